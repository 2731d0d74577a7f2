-- The record of a change of a schedule.
CREATE OR REPLACE FUNCTION detent.schedule_log(
  p_name text, p_tenant text, p_from text, p_to text, p_trigger text, p_actor text, p_reason text, t timestamptz
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    VALUES (p_tenant, 'schedule', p_name, p_from, p_to, p_trigger, p_actor, p_reason, t);
END $$;
