-- alert_take: what a sink is to be told now.
-- takes:   the sink, how many messages it bears in a minute, how many at most, for how many seconds they are the caller's
-- gives:   for each the notice and its try, with how many messages there is room for; in the order it happened
-- locks:   the sink, for this transaction: two never take from it at the same time
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_take_v1(p_sink text, p_minute_max integer, p_limit integer, p_seconds double precision)
RETURNS TABLE (n bigint, policy text, scope text, episode integer, kind text, severity text, message text, facts text,
               value double precision, since timestamptz, at timestamptz, tries integer, room integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
  t    timestamptz := detent.clock();
  left_ integer;
  mine bigint[];
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('detent.alert_take'), hashtext(p_sink));
  SELECT p_minute_max - count(*) INTO left_ FROM detent.alert_delivery d
   WHERE d.sink = p_sink AND d.state = 'sent' AND d.sent_at > t - interval '60 seconds';
  IF left_ <= 0 OR EXISTS (
    SELECT 1 FROM detent.alert_delivery d WHERE d.sink = p_sink AND d.state = 'pending' AND d.taken_until > t) THEN
    RETURN;
  END IF;
  IF t < (SELECT d.due_at FROM detent.alert_delivery d
           WHERE d.sink = p_sink AND d.state = 'pending' ORDER BY d.notice_n LIMIT 1) THEN
    RETURN;
  END IF;
  mine := ARRAY(
    SELECT d.notice_n FROM detent.alert_delivery d
     WHERE d.sink = p_sink AND d.state = 'pending' ORDER BY d.notice_n LIMIT p_limit);
  UPDATE detent.alert_delivery d SET taken_until = t + make_interval(secs => p_seconds), tries = d.tries + 1
   WHERE d.sink = p_sink AND d.notice_n = ANY (mine);
  RETURN QUERY
    SELECT a.n, a.policy, a.scope, a.episode, a.kind, a.severity, a.message, a.facts, a.value, a.since, a.at, d.tries,
           left_
      FROM detent.alert_delivery d JOIN detent.alert_notice a ON a.n = d.notice_n
     WHERE d.sink = p_sink AND d.notice_n = ANY (mine) ORDER BY a.n;
END $$;
