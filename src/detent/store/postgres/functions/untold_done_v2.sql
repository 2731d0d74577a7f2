-- untold_done: the applications heard of these failures.
-- takes:   the jobs, the attempts that failed
-- gives:   nothing
-- locks:   their rows
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.untold_done_v2(p_ids bigint[], p_attempts integer[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  DELETE FROM detent.untold u USING unnest(p_ids, p_attempts) AS told (job_id, attempt)
   WHERE u.job_id = told.job_id AND u.attempt = told.attempt;
END $$;
