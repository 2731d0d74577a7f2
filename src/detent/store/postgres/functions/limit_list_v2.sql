-- limit_list: limits as they stand, by key.
-- takes:   keys, tasks, queues (limits with one of these keys and limits of these tasks and queues; all limits if each is
--          null), the key to go on after, how many
-- gives:   one row per limit
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.limit_list_v2(
  p_keys text[], p_tasks text[], p_queues text[], p_after text, p_limit integer
) RETURNS TABLE (
  key text, rate double precision, per double precision, burst double precision, concurrency_max integer, tasks text[],
  queues text[], tokens double precision, running integer, paused_until timestamptz, throttled integer,
  open_until timestamptz, template text, held_at timestamptz
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  found text[];
BEGIN
  IF p_keys IS NULL AND p_tasks IS NULL AND p_queues IS NULL THEN
    found := ARRAY(SELECT l.key FROM detent.rate_limit l WHERE l.key > p_after ORDER BY l.key LIMIT p_limit);
  ELSE
    found := ARRAY(SELECT u.key FROM (
      SELECT unnest(p_keys) AS key
      UNION SELECT m.limit_key FROM detent.limit_member m WHERE m.kind = 'task' AND m.name = ANY (p_tasks)
      UNION SELECT m.limit_key FROM detent.limit_member m WHERE m.kind = 'queue' AND m.name = ANY (p_queues)) u
      WHERE u.key > p_after ORDER BY u.key LIMIT p_limit);
  END IF;
  RETURN QUERY
    SELECT l.key, l.rate, l.per, l.burst, l.concurrency_max,
           coalesce(m.tasks, '{}'), coalesce(m.queues, '{}'),
           detent.limit_tokens(l, detent.clock()),
           (SELECT count(*)::integer FROM detent.limit_slot s
              JOIN detent.job j ON j.id = s.job_id AND j.attempt = s.attempt AND j.state = 'running'
             WHERE s.limit_key = l.key),
           l.paused_until, l.throttled, l.open_until, l.template, l.held_at
      FROM detent.rate_limit l
      LEFT JOIN (
        SELECT n.limit_key, array_agg(n.name ORDER BY n.name COLLATE "C") FILTER (WHERE n.kind = 'task') AS tasks,
               array_agg(n.name ORDER BY n.name COLLATE "C") FILTER (WHERE n.kind = 'queue') AS queues
          FROM detent.limit_member n WHERE n.limit_key = ANY (found) GROUP BY n.limit_key) m ON m.limit_key = l.key
     WHERE l.key = ANY (found) ORDER BY l.key;
END $$;
