-- times_put: what tasks say of themselves.
-- takes:   tasks, and as arrays beside them the seconds of each (null is as everywhere)
-- gives:   nothing
-- locks:   their rows
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.times_put_v1(
  p_tasks text[], p_stale_after double precision[], p_stalled_after double precision[], p_result_ttl double precision[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
BEGIN
  INSERT INTO detent.task_times AS s (task, stale_after, stalled_after, result_ttl)
    SELECT u.task, u.stale_after, u.stalled_after, u.result_ttl
      FROM unnest(p_tasks, p_stale_after, p_stalled_after, p_result_ttl) AS u (task, stale_after, stalled_after, result_ttl)
     WHERE num_nonnulls(u.stale_after, u.stalled_after, u.result_ttl) > 0 ORDER BY u.task
    ON CONFLICT (task) DO UPDATE
      SET stale_after = excluded.stale_after, stalled_after = excluded.stalled_after, result_ttl = excluded.result_ttl
      WHERE (s.stale_after, s.stalled_after, s.result_ttl)
            IS DISTINCT FROM (excluded.stale_after, excluded.stalled_after, excluded.result_ttl);
  DELETE FROM detent.task_times s
   USING unnest(p_tasks, p_stale_after, p_stalled_after, p_result_ttl) AS u (task, stale_after, stalled_after, result_ttl)
   WHERE s.task = u.task AND num_nonnulls(u.stale_after, u.stalled_after, u.result_ttl) = 0;
END $$;
