-- Alerts of runs. Triggers raise and resolve them through this view.

-- differs: what the functions alert_raise and alert_resolve do on PostgreSQL, for triggers, which cannot call any. A row that
-- is inserted here raises an alert; one without a severity resolves it.
CREATE VIEW detent_alert_event AS
  SELECT policy, scope, severity, message, facts, value, last_at AS at FROM detent_alert WHERE 0;

CREATE TRIGGER detent_alert_event_raises INSTEAD OF INSERT ON detent_alert_event
  FOR EACH ROW WHEN NEW.severity IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM detent_alert_policy p WHERE p.name = NEW.policy AND NOT p.enabled)
BEGIN
  UPDATE detent_alert
     SET severity = coalesce((SELECT p.severity FROM detent_alert_policy p WHERE p.name = NEW.policy), NEW.severity),
         message = substr(NEW.message, 1, 2000), facts = NEW.facts, value = NEW.value, raised = raised + 1, last_at = max(last_at, NEW.at)
   WHERE policy = NEW.policy AND scope = NEW.scope AND state = 'firing';
  INSERT INTO detent_transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, metadata, at)
    SELECT 'alert', NEW.policy || CASE NEW.scope WHEN '' THEN '' ELSE '/' || NEW.scope END, a.state, 'firing', 'raise', 'system',
           substr(NEW.message, 1, 2000), NEW.facts, max(NEW.at, coalesce(a.last_at, NEW.at))
      FROM (SELECT 1) LEFT JOIN detent_alert a ON a.policy = NEW.policy AND a.scope = NEW.scope
     WHERE a.state IS NOT 'firing';
  INSERT INTO detent_alert (policy, scope, severity, state, message, facts, value, since, last_at, notified_at)
    VALUES (NEW.policy, NEW.scope, coalesce((SELECT p.severity FROM detent_alert_policy p WHERE p.name = NEW.policy), NEW.severity),
            'firing', substr(NEW.message, 1, 2000), NEW.facts, NEW.value, NEW.at, NEW.at, NEW.at)
    ON CONFLICT (policy, scope) DO UPDATE
      SET severity = excluded.severity, state = 'firing', episode = episode + 1, message = excluded.message, facts = excluded.facts,
          value = excluded.value, raised = 1, since = max(excluded.since, last_at), last_at = max(excluded.last_at, last_at),
          notified_at = max(excluded.notified_at, last_at), resolved_at = NULL, acknowledged_at = NULL, acknowledged_by = NULL,
          acknowledged_reason = NULL
      WHERE state = 'resolved';
  INSERT INTO detent_alert_notice (policy, scope, episode, kind, severity, message, facts, value, since, at)
    SELECT policy, scope, episode, 'firing', severity, message, facts, value, since, since
      FROM detent_alert WHERE policy = NEW.policy AND scope = NEW.scope AND raised = 1;
END;

CREATE TRIGGER detent_alert_event_resolves INSTEAD OF INSERT ON detent_alert_event
  FOR EACH ROW WHEN NEW.severity IS NULL
    AND EXISTS (SELECT 1 FROM detent_alert a WHERE a.policy = NEW.policy AND a.scope = NEW.scope AND a.state = 'firing')
BEGIN
  INSERT INTO detent_transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    SELECT 'alert', policy || CASE scope WHEN '' THEN '' ELSE '/' || scope END, 'firing', 'resolved', 'resolve', 'system',
           substr(NEW.message, 1, 2000), max(NEW.at, last_at)
      FROM detent_alert WHERE policy = NEW.policy AND scope = NEW.scope;
  UPDATE detent_alert SET state = 'resolved', resolved_at = max(NEW.at, last_at), notified_at = max(NEW.at, last_at)
   WHERE policy = NEW.policy AND scope = NEW.scope;
  INSERT INTO detent_alert_notice (policy, scope, episode, kind, severity, message, facts, value, since, at)
    SELECT policy, scope, episode, 'resolved', severity, substr(NEW.message, 1, 2000), facts, value, since, resolved_at
      FROM detent_alert WHERE policy = NEW.policy AND scope = NEW.scope;
END;
