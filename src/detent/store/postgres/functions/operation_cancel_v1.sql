-- operation_cancel: stop an operation where it is.
-- takes:   the operation, who, why
-- gives:   the state it was in, null where there is none
-- locks:   its row
-- refuses: nothing: one that has ended stays as it is
CREATE OR REPLACE FUNCTION detent.operation_cancel_v1(p_id bigint, p_actor text, p_reason text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t   timestamptz := detent.clock();
  was text;
BEGIN
  SELECT o.state INTO was FROM detent.operation o WHERE o.id = p_id FOR UPDATE;
  IF was = 'running' THEN
    UPDATE detent.operation SET state = 'cancelled', finished_at = t WHERE id = p_id;
    INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
      VALUES ('operation', p_id::text, 'running', 'cancelled', 'cancel', p_actor, p_reason, t);
  END IF;
  RETURN was;
END $$;
