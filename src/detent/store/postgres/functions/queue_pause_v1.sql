-- queue_pause: no claim enters this queue until it is resumed.
-- takes:   the queue, who, why
-- gives:   whether that changed anything
-- locks:   the queue's row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.queue_pause_v1(p_queue text, p_actor text, p_reason text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  INSERT INTO detent.queue AS q (name, paused_at, paused_by, reason) VALUES (p_queue, t, p_actor, p_reason)
    ON CONFLICT (name) DO UPDATE SET paused_at = t, paused_by = p_actor, reason = p_reason WHERE q.paused_at IS NULL;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    VALUES ('queue', p_queue, 'open', 'paused', 'pause', p_actor, p_reason, t);
  RETURN true;
END $$;
