-- A change of a limit goes on record, and a breaker's is told at once to whoever runs this, and to the server's log.
CREATE OR REPLACE FUNCTION detent.limit_log(
  p_key text, p_from text, p_to text, p_trigger text, p_actor text, p_reason text, t timestamptz
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    VALUES ('limit', p_key, p_from, p_to, p_trigger, p_actor, p_reason, t);
  IF p_to = 'open' THEN
    RAISE WARNING USING ERRCODE = 'DT010', MESSAGE = format('the breaker of limit %L is open: %s', p_key, p_reason);
  ELSIF p_from = 'open' THEN
    RAISE NOTICE USING ERRCODE = 'DT010', MESSAGE = format('the breaker of limit %L is closed: %s', p_key, coalesce(p_reason, 'by ' || p_actor));
  END IF;
END $$;
