-- limit_pause: let no job begin under a limit until it is reset.
-- takes:   the key, who, why. A key that jobs have and that nobody has claimed under yet is made a limit by that
-- gives:   whether that changed anything; null where there is no such limit
-- locks:   the limit's row
-- refuses: a limit that is not there
CREATE OR REPLACE FUNCTION detent.limit_pause_v1(p_key text, p_actor text, p_reason text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t timestamptz := detent.clock();
  l detent.rate_limit;
BEGIN
  PERFORM detent.limit_make(p_key, min(m.limit_key), t)
     FROM detent.lane n JOIN detent.limit_member m ON m.kind = 'task' AND m.name = n.task
    WHERE n.limit_key = p_key AND p_key <> '';
  SELECT k.* INTO l FROM detent.rate_limit k WHERE k.key = p_key FOR UPDATE;
  IF l.key IS NULL OR l.held_at IS NOT NULL THEN
    RETURN CASE WHEN l.key IS NOT NULL THEN false END;
  END IF;
  UPDATE detent.rate_limit k SET held_at = t WHERE k.key = p_key;
  PERFORM detent.limit_log(
    p_key, CASE WHEN l.open_until IS NULL THEN 'closed' ELSE 'half open' END, 'paused', 'pause', p_actor, p_reason, t);
  RETURN true;
END $$;
