-- entity_move: the record of a move of a user's own entity. The caller moves the row itself, in the same transaction and
-- with its own rights; the guard on the table looks for this line.
-- takes:   the lifecycle's name, the entity's id, from, to, trigger, who, why, metadata
-- gives:   nothing
-- locks:   nothing
-- refuses: entities of Detent's own
CREATE OR REPLACE FUNCTION detent.entity_move_v1(
  p_entity text, p_entity_id text, p_from text, p_to text, p_trigger text, p_actor text, p_reason text DEFAULT NULL,
  p_metadata text DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  last timestamptz := (SELECT l.at FROM detent.transition_log l
                        WHERE l.job_id IS NULL AND l.entity = p_entity AND l.entity_id = p_entity_id
                        ORDER BY l.n DESC LIMIT 1);
BEGIN
  IF p_entity IN ('alert', 'alert_policy', 'batch_run', 'database', 'execution', 'job', 'limit', 'operation', 'ops_run',
                  'partition', 'pipeline_run', 'queue', 'recovery', 'schedule', 'target') THEN
    RAISE EXCEPTION 'DT041 % is moved by Detent alone', p_entity USING ERRCODE = 'DT041';
  END IF;
  INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, metadata, forced, at)
    VALUES (p_entity, p_entity_id, p_from, p_to, p_trigger, p_actor, p_reason, p_metadata, p_trigger = 'force',
            greatest(detent.clock(), last));
END $$;
