-- The record of an explicit move of a job. It is written before the move: the guard looks for it.
CREATE OR REPLACE FUNCTION detent.job_log(
  j detent.job, p_to text, p_trigger text, p_actor text, p_reason text, t timestamptz
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO detent.transition_log
      (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor, reason, correlation_id, forced, at)
    VALUES (j.tenant, 'job', j.id::text, j.id, j.attempt, j.state, p_to, p_trigger, p_actor, p_reason, j.correlation_id,
            p_trigger = 'force', t);
  IF p_to <> j.state THEN
    PERFORM detent.transition_count(j, p_to, t);
  END IF;
END $$;
