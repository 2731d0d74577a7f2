-- queue_resume: claims enter this queue again.
-- takes:   the queue, who, why
-- gives:   whether that changed anything
-- locks:   the queue's row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.queue_resume_v1(p_queue text, p_actor text, p_reason text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  UPDATE detent.queue q SET paused_at = NULL, paused_by = NULL, reason = NULL
   WHERE q.name = p_queue AND q.paused_at IS NOT NULL;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    VALUES ('queue', p_queue, 'paused', 'open', 'resume', p_actor, p_reason, t);
  PERFORM detent.wake_waiters(false);
  RETURN true;
END $$;
