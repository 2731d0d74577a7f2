-- operation_start: begin to do something to all jobs there are now that fit.
-- takes:   its id, what to do, the filter and the argument (read by the client only), who, why
-- gives:   the operation
-- locks:   its row
-- refuses: nothing: the same id again is the same operation
CREATE OR REPLACE FUNCTION detent.operation_start_v1(
  p_id bigint, p_action text, p_filter text, p_argument text, p_actor text, p_reason text DEFAULT NULL
) RETURNS SETOF detent.operation
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  INSERT INTO detent.operation (id, action, filter, argument, actor, reason, until_id, created_at)
    VALUES (p_id, p_action, p_filter, p_argument, p_actor, p_reason,
            coalesce((SELECT max(j.id) FROM detent.job j), 0), t)
    ON CONFLICT (id) DO NOTHING;
  IF FOUND THEN
    INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, metadata, at)
      VALUES ('operation', p_id::text, NULL, 'running', p_action, p_actor, p_reason, p_filter, t);
  END IF;
  RETURN QUERY SELECT o.* FROM detent.operation o WHERE o.id = p_id;
END $$;
