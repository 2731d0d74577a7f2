-- job_prune: delete finished jobs with all their records.
-- takes:   the horizon, the id to go on after, how many jobs to look at, who; of which states (null is any)
-- gives:   how many jobs went, and the id to go on after, null at the end
-- locks:   the jobs that go; whatever others hold stays for a later pass
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_prune_v1(
  p_before timestamptz, p_after_id bigint, p_limit integer, p_actor text, p_states text[] DEFAULT NULL
) RETURNS TABLE (jobs integer, next_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t      timestamptz := detent.clock();
  looked bigint[];
  old    bigint[];
BEGIN
  INSERT INTO detent.horizon (before, actor, at)
    SELECT p_before, p_actor, t WHERE NOT EXISTS (SELECT 1 FROM detent.horizon h WHERE h.before >= p_before);
  looked := ARRAY(SELECT j.id FROM detent.job j WHERE j.id > p_after_id ORDER BY j.id LIMIT p_limit);
  old := ARRAY(
    SELECT j.id FROM detent.job j
     WHERE j.id = ANY (looked) AND detent.job_may_go(j.finished_at, j.run_id, p_before)
       AND j.finished_at >= j.created_at AND (p_states IS NULL OR j.state = ANY (p_states))
       FOR UPDATE SKIP LOCKED);
  PERFORM detent.jobs_go(old);
  jobs := cardinality(old);
  next_id := CASE WHEN cardinality(looked) = p_limit THEN looked[p_limit] END;
  RETURN NEXT;
END $$;
