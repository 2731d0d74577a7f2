-- reconcile_open: the look at a run that is under way. One whose job has given up is over. The caller has the run's lock.
-- takes:   the run
-- gives:   its number, null where there is none
-- locks:   the look
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.reconcile_open_v1(p_run_id bigint) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  look detent.reconciliation;
BEGIN
  SELECT r.* INTO look FROM detent.reconciliation r WHERE r.run_id = p_run_id AND r.done_at IS NULL FOR UPDATE;
  IF look.no IS NOT NULL AND NOT EXISTS (
       SELECT 1 FROM detent.job j WHERE j.id = look.job_id AND j.state IN ('pending', 'running')) THEN
    UPDATE detent.reconciliation r SET done_at = greatest(detent.clock(), r.created_at)
     WHERE r.run_id = p_run_id AND r.no = look.no;
    RETURN NULL;
  END IF;
  RETURN look.no;
END $$;
