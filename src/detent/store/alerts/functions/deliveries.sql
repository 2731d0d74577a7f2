-- alert_spread: create the deliveries of new notices.
-- takes:   the sinks, and for each the severities it wants, joined by commas
-- gives:   how many deliveries were created
-- locks:   the new notices; skips those that another transaction is spreading
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_spread_v1(p_sinks text[], p_severities text[]) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  t    timestamptz := detent.clock();
  new  bigint[];
  made integer;
BEGIN
  new := ARRAY(SELECT a.n FROM detent.alert_notice a WHERE NOT a.spread ORDER BY a.n FOR UPDATE SKIP LOCKED);
  INSERT INTO detent.alert_delivery (notice_n, sink, due_at)
    SELECT a.n, r.sink, t
      FROM detent.alert_notice a
      JOIN unnest(p_sinks, p_severities) AS r (sink, severities) ON a.severity = ANY (string_to_array(r.severities, ','))
     WHERE a.n = ANY (new);
  GET DIAGNOSTICS made = ROW_COUNT;
  UPDATE detent.alert_notice a SET spread = true WHERE a.n = ANY (new);
  RETURN made;
END $$;

-- alert_take: take the deliveries that a sink sends next.
-- takes:   the sink, the maximum number of messages per minute, how many at most, for how many seconds they are the caller's
-- gives:   each notice in order, with the number of its try and how many messages may be sent now
-- locks:   the sink, until the transaction ends: two callers never take from it at the same time
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

-- alert_outcomes_put: record the outcome of deliveries that were taken.
-- takes:   the sink, and for each its notice, its state, the error, after how many seconds it is retried, and
--          whether it was tried at all
-- gives:   nothing
-- locks:   their rows
-- refuses: nothing; deliveries that are no longer pending stay as they are
CREATE OR REPLACE FUNCTION detent.alert_outcomes_put_v1(
  p_sink text, p_notices bigint[], p_states text[], p_errors text[], p_delays double precision[], p_tried boolean[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  FOR i IN 1 .. cardinality(p_notices) LOOP
    UPDATE detent.alert_delivery d
       SET state = p_states[i], error = left(p_errors[i], 2000), taken_until = NULL,
           due_at = t + make_interval(secs => p_delays[i]), tries = greatest(d.tries - (NOT p_tried[i])::integer, 0),
           sent_at = CASE WHEN p_states[i] <> 'pending' THEN t END
     WHERE d.notice_n = p_notices[i] AND d.sink = p_sink AND d.state = 'pending';
  END LOOP;
END $$;

-- alert_deliveries: the deliveries of an alert.
-- takes:   the policy, the scope, how many
-- gives:   each notice at each sink, the newest first
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_deliveries_v1(p_policy text, p_scope text, p_limit integer)
RETURNS TABLE (sink text, kind text, episode integer, message text, at timestamptz, state text, tries integer,
               due_at timestamptz, sent_at timestamptz, error text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT d.sink, a.kind, a.episode, a.message, a.at, d.state, d.tries, d.due_at, d.sent_at, d.error
      FROM detent.alert_notice a JOIN detent.alert_delivery d ON d.notice_n = a.n
     WHERE a.policy = p_policy AND a.scope = p_scope ORDER BY a.n DESC, d.sink COLLATE "C" LIMIT p_limit;
END $$;

-- alert_sweep: write reminders of alerts that still fire, and delete old alerts and notices.
-- takes:   after how many seconds to remind, and after how many to delete
-- gives:   the number of reminders
-- locks:   the rows of these alerts; skips those that others have locked
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_sweep_v1(p_remind_after double precision, p_keep double precision) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  t        timestamptz := detent.clock();
  long_ago timestamptz := t - make_interval(secs => p_keep);
  a        detent.alert;
  reminded integer := 0;
  old      bigint[];
BEGIN
  FOR a IN
    SELECT k.* FROM detent.alert k
     WHERE k.state = 'firing' AND k.acknowledged_at IS NULL AND k.notified_at <= t - make_interval(secs => p_remind_after)
     ORDER BY k.policy COLLATE "C", k.scope COLLATE "C" FOR UPDATE SKIP LOCKED
  LOOP
    UPDATE detent.alert k SET notified_at = t WHERE k.policy = a.policy AND k.scope = a.scope;
    PERFORM detent.alert_notify(a.policy, a.scope, 'still', a.message, t);
    reminded := reminded + 1;
  END LOOP;
  old := ARRAY(SELECT k.n FROM detent.alert_notice k WHERE k.at < long_ago ORDER BY k.at, k.n LIMIT 1000);
  IF cardinality(old) > 0 THEN
    DELETE FROM detent.alert_delivery d WHERE d.notice_n = ANY (old);
    DELETE FROM detent.alert_notice k WHERE k.n = ANY (old);
  END IF;
  DELETE FROM detent.alert k
   WHERE k.resolved_at < long_ago AND NOT EXISTS (
     SELECT 1 FROM detent.alert_notice n WHERE n.policy = k.policy AND n.scope = k.scope AND n.kind <> 'still');
  RETURN reminded;
END $$;
