-- webhook_place: how far a target of outgoing webhooks has been told.
-- takes:   the target
-- gives:   its place in the record; null if it has none yet
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.webhook_place_v1(p_target text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN (SELECT w.place FROM detent.webhook_target w WHERE w.name = p_target);
END $$;

-- webhook_move: move the place of a target.
-- takes:   the target, its place before (null: none yet) and after
-- gives:   whether it was there
-- locks:   the target's row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.webhook_move_v1(p_target text, p_before text, p_after text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  IF p_before IS NULL THEN
    INSERT INTO detent.webhook_target (name, place, moved_at) VALUES (p_target, p_after, t)
      ON CONFLICT ON CONSTRAINT webhook_target_pkey DO NOTHING;
  ELSE
    UPDATE detent.webhook_target w SET place = p_after, moved_at = t WHERE w.name = p_target AND w.place = p_before;
  END IF;
  RETURN FOUND;
END $$;

-- announced_put: say which tasks are announced when they succeed.
-- takes:   those that are, and all tasks that are meant
-- gives:   nothing
-- locks:   their rows
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.announced_put_v1(p_announced text[], p_tasks text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
BEGIN
  DELETE FROM detent.announced_task a WHERE a.task = ANY (p_tasks) AND a.task <> ALL (p_announced);
  INSERT INTO detent.announced_task (task) SELECT DISTINCT u.task FROM unnest(p_announced) AS u (task) ORDER BY u.task
    ON CONFLICT DO NOTHING;
END $$;
