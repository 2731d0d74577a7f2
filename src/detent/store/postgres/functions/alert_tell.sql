-- What people are to hear of an alert, as it stands; sent later, by whoever has the means.
CREATE OR REPLACE FUNCTION detent.alert_tell(p_policy text, p_scope text, p_kind text, p_message text, t timestamptz)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO detent.alert_notice (policy, scope, episode, kind, severity, message, facts, value, since, at)
    SELECT a.policy, a.scope, a.episode, p_kind, a.severity, p_message, a.facts, a.value, a.since, t
      FROM detent.alert a WHERE a.policy = p_policy AND a.scope = p_scope;
END $$;
