-- untold_done: the applications of these jobs were told.
-- takes:   the jobs
-- gives:   nothing
-- locks:   their rows
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.untold_done_v1(p_ids bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  DELETE FROM detent.untold u WHERE u.job_id = ANY (p_ids);
END $$;
