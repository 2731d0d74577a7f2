-- target_conflict: a target was refused because others have changed it. The caller holds the job that applies or reverts it.
-- takes:   the run, the job, what was found in place of the expected value
-- gives:   nothing
-- locks:   the target, then the run
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.target_conflict_v1(p_run_id bigint, p_job_id bigint, p_found text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  UPDATE detent.target g SET conflict = p_found WHERE g.apply_job_id = p_job_id AND g.run_id = p_run_id AND g.state = 'applying';
  UPDATE detent.target g SET conflict = p_found WHERE g.revert_job_id = p_job_id AND g.run_id = p_run_id AND g.state = 'applied';
END $$;
