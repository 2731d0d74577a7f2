-- alert_raise: something is wrong.
-- takes:   the policy and what of it (empty is the whole), how grave, a sentence, facts as JSON, the value
-- gives:   whether it fires from now on; false where it did already, null where its policy is switched off
-- locks:   the alert's row, until the transaction ends
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_raise_v1(
  p_policy text, p_scope text, p_severity text, p_message text, p_facts text DEFAULT NULL,
  p_value double precision DEFAULT NULL
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
    INSERT INTO detent.alert (policy, scope, severity, state, message, facts, value, since, last_at, told_at)
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
           value = p_value, raised = 1, since = t, last_at = t, told_at = t, resolved_at = NULL,
           acknowledged_at = NULL, acknowledged_by = NULL, acknowledged_reason = NULL
     WHERE a.policy = p_policy AND a.scope = p_scope;
    EXIT;
  END LOOP;
  PERFORM detent.alert_log(p_policy, p_scope, was.state, 'firing', 'raise', 'system', told, p_facts, t);
  PERFORM detent.alert_tell(p_policy, p_scope, 'firing', told, t);
  RETURN true;
END $$;
