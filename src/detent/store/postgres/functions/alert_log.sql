-- The record of a change of an alert.
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
