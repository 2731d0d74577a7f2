-- untold_take: jobs that the reaper gave up, to be told to their application.
-- takes:   the tasks that the caller knows, how many at most, for how many seconds nobody else is to tell them
-- gives:   the jobs
-- locks:   their rows; whatever others hold is passed over
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.untold_take_v1(p_tasks text[], p_limit integer, p_seconds double precision)
RETURNS bigint[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  t     timestamptz := detent.clock();
  taken bigint[];
BEGIN
  WITH told AS (
    UPDATE detent.untold SET taken_until = t + make_interval(secs => p_seconds) WHERE ctid = ANY (ARRAY(
      SELECT u.ctid FROM detent.untold u WHERE u.task = ANY (p_tasks) AND coalesce(u.taken_until <= t, true)
       ORDER BY u.job_id LIMIT p_limit FOR UPDATE SKIP LOCKED))
    RETURNING job_id
  )
  SELECT coalesce(array_agg(o.job_id ORDER BY o.job_id), '{}') INTO taken FROM told o;
  RETURN taken;
END $$;
