-- limit_list: every limit as it stands, by key.
-- takes:   nothing
-- gives:   one row per limit
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.limit_list_v1() RETURNS TABLE (
  key text, rate double precision, per double precision, burst double precision, concurrency_max integer, tasks text[],
  queues text[], tokens double precision, running integer, paused_until timestamptz, throttled integer,
  open_until timestamptz, template text, held_at timestamptz
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT l.key, l.rate, l.per, l.burst, l.concurrency_max,
           ARRAY(SELECT m.name FROM detent.limit_member m WHERE m.limit_key = l.key AND m.kind = 'task' ORDER BY m.name COLLATE "C"),
           ARRAY(SELECT m.name FROM detent.limit_member m WHERE m.limit_key = l.key AND m.kind = 'queue' ORDER BY m.name COLLATE "C"),
           detent.limit_tokens(l, detent.clock()),
           (SELECT count(*)::integer FROM detent.limit_slot s
              JOIN detent.job j ON j.id = s.job_id AND j.attempt = s.attempt AND j.state = 'running'
             WHERE s.limit_key = l.key),
           l.paused_until, l.throttled, l.open_until, l.template, l.held_at
      FROM detent.rate_limit l ORDER BY l.key COLLATE "C";
END $$;
