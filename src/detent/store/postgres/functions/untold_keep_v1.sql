-- untold_keep: the caller is still telling of these failures.
-- takes:   the jobs, the attempts that failed, for how many seconds more no other caller gets them
-- gives:   nothing
-- locks:   their rows
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.untold_keep_v1(p_ids bigint[], p_attempts integer[], p_seconds double precision)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  UPDATE detent.untold u SET taken_until = t + make_interval(secs => p_seconds)
    FROM unnest(p_ids, p_attempts) AS told (job_id, attempt)
   WHERE u.job_id = told.job_id AND u.attempt = told.attempt;
END $$;
