-- batch_prune: delete old runs with their targets. Their jobs are for job_prune, after that.
-- takes:   the horizon, the id to go on after, how many runs to look at, who
-- gives:   how many runs went, and the id to go on after, null at the end
-- locks:   the runs that go; whatever others hold stays for a later pass
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_prune_v1(p_before timestamptz, p_after_id bigint, p_limit integer, p_actor text)
RETURNS TABLE (runs integer, next_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t      timestamptz := detent.clock();
  looked bigint[];
  old    bigint[];
BEGIN
  INSERT INTO detent.horizon (before, actor, at)
    SELECT p_before, p_actor, t WHERE NOT EXISTS (SELECT 1 FROM detent.horizon h WHERE h.before >= p_before);
  looked := ARRAY(SELECT b.id FROM detent.batch_run b WHERE b.id > p_after_id ORDER BY b.id LIMIT p_limit);
  old := ARRAY(
    SELECT b.id FROM detent.batch_run b
     WHERE b.id = ANY (looked) AND b.moved_at < p_before AND b.outstanding = 0 AND b.queued + b.applying + b.reverting = 0
       AND b.reconcile_at IS NULL AND b.state IN ('preview', 'applied', 'partial', 'failed', 'rolled_back')
       FOR UPDATE SKIP LOCKED);
  DELETE FROM detent.batch_run b WHERE b.id = ANY (old);
  DELETE FROM detent.target g WHERE g.run_id = ANY (old);
  DELETE FROM detent.batch_choice c USING detent.batch_action a WHERE a.run_id = ANY (old) AND c.action_id = a.id;
  DELETE FROM detent.batch_action a WHERE a.run_id = ANY (old);
  DELETE FROM detent.reconciliation r WHERE r.run_id = ANY (old);
  DELETE FROM detent.mismatch m WHERE m.run_id = ANY (old);
  runs := cardinality(old);
  next_id := CASE WHEN cardinality(looked) = p_limit THEN looked[p_limit] END;
  RETURN NEXT;
END $$;
