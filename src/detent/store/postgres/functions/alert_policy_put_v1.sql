-- alert_policy_put: when something is wrong, as somebody sets it.
-- takes:   the policy's columns, who, why
-- gives:   whether that changed anything
-- locks:   its row, and what fires by it where it is switched off
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
