-- The line of a move of a pipeline run, which must be there before the move.
CREATE OR REPLACE FUNCTION detent.pipeline_log(
  r detent.pipeline_run, p_from text, p_to text, p_trigger text, p_actor text, p_reason text, p_forced boolean, t timestamptz
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, forced, at)
    VALUES (r.tenant, 'pipeline_run', r.id::text, p_from, p_to, p_trigger, p_actor, p_reason, p_forced, t);
END $$;
