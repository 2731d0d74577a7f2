-- recovery_set: whether silent jobs of a queue are stopped without a person's approval.
-- takes:   the queue, after how many seconds (null is never; both null: only with approval), who, why
-- gives:   whether that changed anything
-- locks:   the queue's row among the recoveries
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.recovery_set_v1(
  p_queue text, p_stale_after double precision, p_stalled_after double precision, p_actor text, p_reason text DEFAULT NULL
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t         timestamptz := detent.clock();
  was       detent.recovery;
  automatic boolean := p_stale_after IS NOT NULL OR p_stalled_after IS NOT NULL;
BEGIN
  SELECT r.* INTO was FROM detent.recovery r WHERE r.queue = p_queue FOR UPDATE;
  IF (was.stale_after, was.stalled_after) IS NOT DISTINCT FROM (p_stale_after, p_stalled_after) THEN
    RETURN false;
  END IF;
  INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    VALUES ('recovery', p_queue, CASE WHEN was.queue IS NULL THEN 'approval' ELSE 'automatic' END,
            CASE WHEN automatic THEN 'automatic' ELSE 'approval' END, 'set', p_actor, p_reason, t);
  IF automatic THEN
    INSERT INTO detent.recovery (queue, stale_after, stalled_after, changed_by, reason, changed_at)
      VALUES (p_queue, p_stale_after, p_stalled_after, p_actor, p_reason, t)
      ON CONFLICT (queue) DO UPDATE
        SET stale_after = excluded.stale_after, stalled_after = excluded.stalled_after, changed_by = excluded.changed_by,
            reason = excluded.reason, changed_at = excluded.changed_at;
  ELSE
    DELETE FROM detent.recovery r WHERE r.queue = p_queue;
  END IF;
  RETURN true;
END $$;
