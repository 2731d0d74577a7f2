-- alert_raise: raise an alert.
-- takes:   the policy, the scope (empty: the whole database), the severity, a message, facts as JSON, the value; who, and why
--          (null: the message)
-- gives:   true if it starts to fire; false if it fired already; null if its policy is switched off
-- locks:   the alert's row, until the transaction ends
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_raise_v2(
  p_policy text, p_scope text, p_severity text, p_message text, p_facts text DEFAULT NULL,
  p_value double precision DEFAULT NULL, p_actor text DEFAULT 'system', p_reason text DEFAULT NULL
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t      timestamptz := detent.clock();
  said   detent.alert_policy;
  was    detent.alert;
  grave  text;
  told   text := left(p_message, 2000);
BEGIN
  SELECT p.* INTO said FROM detent.alert_policy p WHERE p.name = p_policy;
  IF NOT said.enabled THEN
    RETURN NULL;
  END IF;
  grave := coalesce(said.severity, p_severity);
  LOOP
    INSERT INTO detent.alert (policy, scope, severity, state, message, facts, value, since, last_at, notified_at)
      VALUES (p_policy, p_scope, grave, 'firing', told, p_facts, p_value, t, t, t)
      ON CONFLICT (policy, scope) DO NOTHING;
    EXIT WHEN FOUND;
    SELECT a.* INTO was FROM detent.alert a WHERE a.policy = p_policy AND a.scope = p_scope FOR UPDATE;
    CONTINUE WHEN NOT FOUND;
    t := greatest(t, was.last_at);
    IF was.state = 'firing' THEN
      UPDATE detent.alert a
         SET severity = grave, message = told, facts = p_facts, value = p_value, raised = a.raised + 1, last_at = t
       WHERE a.policy = p_policy AND a.scope = p_scope;
      RETURN false;
    END IF;
    UPDATE detent.alert a
       SET severity = grave, state = 'firing', episode = a.episode + 1, message = told, facts = p_facts,
           value = p_value, raised = 1, since = t, last_at = t, notified_at = t, resolved_at = NULL,
           acknowledged_at = NULL, acknowledged_by = NULL, acknowledged_reason = NULL
     WHERE a.policy = p_policy AND a.scope = p_scope;
    EXIT;
  END LOOP;
  PERFORM detent.alert_log(p_policy, p_scope, was.state, 'firing', 'raise', p_actor, coalesce(p_reason, told), p_facts, t);
  PERFORM detent.alert_notify(p_policy, p_scope, 'firing', told, t);
  RETURN true;
END $$;

-- alert_resolve: resolve an alert.
-- takes:   the policy, the scope, a message, the seconds for which it must not have been raised, who
-- gives:   its state, and whether that changed
-- locks:   the alert's row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_resolve_v1(
  p_policy text, p_scope text, p_message text, p_calm double precision DEFAULT 0, p_actor text DEFAULT 'system',
  OUT now_state text, OUT changed boolean
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t    timestamptz := detent.clock();
  was  detent.alert;
  told text := left(p_message, 2000);
BEGIN
  SELECT a.* INTO was FROM detent.alert a
   WHERE a.policy = p_policy AND a.scope = p_scope AND a.state = 'firing' FOR UPDATE;
  changed := false;
  now_state := CASE WHEN was.policy IS NULL THEN 'resolved' ELSE 'firing' END;
  t := greatest(t, was.last_at);
  IF was.policy IS NULL OR t - was.last_at < make_interval(secs => p_calm) THEN
    RETURN;
  END IF;
  UPDATE detent.alert a SET state = 'resolved', resolved_at = t, notified_at = t
   WHERE a.policy = p_policy AND a.scope = p_scope;
  PERFORM detent.alert_log(p_policy, p_scope, 'firing', 'resolved', 'resolve', p_actor, told, NULL, t);
  PERFORM detent.alert_notify(p_policy, p_scope, 'resolved', told, t);
  now_state := 'resolved';
  changed := true;
END $$;

-- alert_ack: acknowledge an alert.
-- takes:   the policy, the scope, who, why
-- gives:   its state, and whether this changed anything; a null state if there is no such alert
-- locks:   the alert's row
-- refuses: an alert that does not exist
CREATE OR REPLACE FUNCTION detent.alert_ack_v1(
  p_policy text, p_scope text, p_actor text, p_reason text DEFAULT NULL, OUT now_state text, OUT changed boolean
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t   timestamptz := detent.clock();
  was detent.alert;
BEGIN
  SELECT a.* INTO was FROM detent.alert a WHERE a.policy = p_policy AND a.scope = p_scope FOR UPDATE;
  now_state := was.state;
  changed := coalesce(was.state = 'firing' AND was.acknowledged_at IS NULL, false);
  IF changed THEN
    t := greatest(t, was.last_at);
    UPDATE detent.alert a SET acknowledged_at = t, acknowledged_by = p_actor, acknowledged_reason = p_reason
     WHERE a.policy = p_policy AND a.scope = p_scope;
    PERFORM detent.alert_log(p_policy, p_scope, 'firing', 'firing', 'acknowledge', p_actor, p_reason, NULL, t);
  END IF;
END $$;

-- alert_get: an alert.
-- takes:   the policy, the scope
-- gives:   its row
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_get_v1(p_policy text, p_scope text) RETURNS SETOF detent.alert
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT a.* FROM detent.alert a WHERE a.policy = p_policy AND a.scope = p_scope;
END $$;

-- alert_list: alerts.
-- takes:   a state (null is any), how many; the place to continue after: state, since, policy, scope (null: the beginning)
-- gives:   firing alerts first, the newest of each state first
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_list_v2(
  p_state text, p_limit integer, p_after_state text, p_after_since timestamptz, p_after_policy text, p_after_scope text
) RETURNS SETOF detent.alert
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET enable_sort = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  left_over integer := p_limit;
  found_    integer;
  of_state  text;
BEGIN
  FOREACH of_state IN ARRAY '{firing,resolved}'::text[] LOOP
    CONTINUE WHEN of_state <> coalesce(p_state, of_state) OR of_state < p_after_state;
    IF of_state = p_after_state THEN
      RETURN QUERY
        SELECT a.* FROM detent.alert a
         WHERE a.state = of_state
           AND (a.since, a.policy, a.scope) < (p_after_since, p_after_policy, p_after_scope)
         ORDER BY a.since DESC, a.policy DESC, a.scope DESC LIMIT left_over;
    ELSE
      RETURN QUERY
        SELECT a.* FROM detent.alert a WHERE a.state = of_state
         ORDER BY a.since DESC, a.policy DESC, a.scope DESC LIMIT left_over;
    END IF;
    GET DIAGNOSTICS found_ = ROW_COUNT;
    left_over := left_over - found_;
  END LOOP;
END $$;

-- alert_policy_put: set a policy.
-- takes:   the policy's columns, who, why
-- gives:   whether this changed anything
-- locks:   its row, and its firing alerts if it is switched off
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_policy_put_v1(
  p_name text, p_measure text, p_each text, p_severity text, p_threshold double precision,
  p_window_seconds double precision, p_count_min integer, p_calm_seconds double precision, p_message text,
  p_enabled boolean, p_actor text, p_reason text DEFAULT NULL
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t      timestamptz := detent.clock();
  was    detent.alert_policy;
  found_ text;
BEGIN
  SELECT p.* INTO was FROM detent.alert_policy p WHERE p.name = p_name FOR UPDATE;
  IF (was.name, was.measure, was.each, was.severity, was.threshold, was.window_seconds, was.count_min,
      was.calm_seconds, was.message, was.enabled)
     IS NOT DISTINCT FROM
     (p_name, p_measure, p_each, p_severity, p_threshold, p_window_seconds, p_count_min,
      p_calm_seconds, p_message, p_enabled) THEN
    RETURN false;
  END IF;
  INSERT INTO detent.alert_policy (name, measure, each, severity, threshold, window_seconds, count_min, calm_seconds,
      message, enabled, changed_by, reason, changed_at)
    VALUES (p_name, p_measure, p_each, p_severity, p_threshold, p_window_seconds, p_count_min, p_calm_seconds,
            p_message, p_enabled, p_actor, p_reason, t)
    ON CONFLICT (name) DO UPDATE
      SET measure = excluded.measure, each = excluded.each, severity = excluded.severity,
          threshold = excluded.threshold, window_seconds = excluded.window_seconds, count_min = excluded.count_min,
          calm_seconds = excluded.calm_seconds, message = excluded.message, enabled = excluded.enabled,
          changed_by = excluded.changed_by, reason = excluded.reason, changed_at = excluded.changed_at;
  INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    VALUES ('alert_policy', p_name, CASE WHEN was.name IS NULL THEN 'default' WHEN was.enabled THEN 'on' ELSE 'off' END,
            CASE WHEN p_enabled THEN 'on' ELSE 'off' END, 'set', p_actor, p_reason, t);
  IF NOT p_enabled THEN
    FOR found_ IN
      SELECT a.scope FROM detent.alert a WHERE a.policy = p_name AND a.state = 'firing' ORDER BY a.scope COLLATE "C"
    LOOP
      PERFORM detent.alert_resolve_v1(p_name, found_, 'its policy was switched off', 0, p_actor);
    END LOOP;
  END IF;
  RETURN true;
END $$;

-- alert_policy_drop: remove what was set of a policy.
-- takes:   its name, who, why
-- gives:   whether anything was set
-- locks:   its row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_policy_drop_v1(p_name text, p_actor text, p_reason text DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  was detent.alert_policy;
BEGIN
  DELETE FROM detent.alert_policy p WHERE p.name = p_name RETURNING p.* INTO was;
  IF was.name IS NULL THEN
    RETURN false;
  END IF;
  INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    VALUES ('alert_policy', p_name, CASE WHEN was.enabled THEN 'on' ELSE 'off' END, 'default', 'drop', p_actor, p_reason,
            detent.clock());
  RETURN true;
END $$;

-- alert_policy_list: the policies that were set.
-- takes:   nothing
-- gives:   policies by name
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_policy_list_v1() RETURNS SETOF detent.alert_policy
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT p.* FROM detent.alert_policy p ORDER BY p.name COLLATE "C";
END $$;

-- Record a change of an alert.
CREATE OR REPLACE FUNCTION detent.alert_log(
  p_policy text, p_scope text, p_from text, p_to text, p_trigger text, p_actor text, p_reason text, p_facts text,
  t timestamptz
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, metadata, at)
    VALUES ('alert', p_policy || CASE WHEN p_scope = '' THEN '' ELSE '/' || p_scope END, p_from, p_to, p_trigger,
            p_actor, p_reason, p_facts, t);
END $$;

-- Write a notice of an alert as it is now, to be delivered later.
CREATE OR REPLACE FUNCTION detent.alert_notify(p_policy text, p_scope text, p_kind text, p_message text, t timestamptz)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO detent.alert_notice (policy, scope, episode, kind, severity, message, facts, value, since, at)
    SELECT a.policy, a.scope, a.episode, p_kind, a.severity, p_message, a.facts, a.value, a.since, t
      FROM detent.alert a WHERE a.policy = p_policy AND a.scope = p_scope;
END $$;
