-- batch_holds: whether the caller holds a job of a run.
-- takes:   the job, its attempt, the run
-- gives:   why not; null where it does
-- locks:   the job, against being taken away until the caller has written
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_holds_v1(p_job_id bigint, p_attempt integer, p_run_id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  j detent.job;
BEGIN
  SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id FOR SHARE;
  RETURN coalesce(detent.holder_lost(j, p_attempt, detent.clock()),
                  CASE WHEN j.run_id IS DISTINCT FROM p_run_id THEN 'it is no job of run ' || p_run_id END);
END $$;
