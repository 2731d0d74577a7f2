-- untold_take: failures that their application has not heard of yet.
-- takes:   the tasks that the caller knows, how many at most, for how many seconds no other caller gets them
-- gives:   the jobs, and the attempts that failed
-- locks:   their rows; rows that others have locked are passed over
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.untold_take_v2(p_tasks text[], p_limit integer, p_seconds double precision)
RETURNS TABLE (job_id bigint, attempt integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t timestamptz := detent.clock();
BEGIN
  RETURN QUERY
    WITH free AS (
      SELECT f.job_id, f.attempt
        FROM (SELECT DISTINCT name FROM unnest(p_tasks) AS a (name)) asked
       CROSS JOIN LATERAL (
         SELECT u.job_id, u.attempt FROM detent.untold u
          WHERE u.task = asked.name AND coalesce(u.taken_until <= t, true)
          ORDER BY u.job_id, u.attempt LIMIT p_limit) f
       ORDER BY f.job_id, f.attempt LIMIT p_limit
    ), locked AS (
      SELECT u.job_id, u.attempt FROM detent.untold u
       WHERE (u.job_id, u.attempt) IN (SELECT f.job_id, f.attempt FROM free f) AND coalesce(u.taken_until <= t, true)
         FOR UPDATE SKIP LOCKED
    ), taken AS (
      UPDATE detent.untold u SET taken_until = t + make_interval(secs => p_seconds)
        FROM locked l WHERE u.job_id = l.job_id AND u.attempt = l.attempt
      RETURNING u.job_id, u.attempt
    )
    SELECT o.job_id, o.attempt FROM taken o ORDER BY o.job_id, o.attempt;
END $$;
