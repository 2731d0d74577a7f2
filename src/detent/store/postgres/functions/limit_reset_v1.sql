-- limit_reset: end a limit's pause, whoever made it, close its breaker and fill its bucket.
-- takes:   the key, who, why
-- gives:   whether there was a pause or an open breaker; null where there is no such limit
-- locks:   the limit's row
-- refuses: a limit that is not there
CREATE OR REPLACE FUNCTION detent.limit_reset_v1(p_key text, p_actor text, p_reason text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t     timestamptz := detent.clock();
  l     detent.rate_limit;
  found text;
BEGIN
  SELECT k.* INTO l FROM detent.rate_limit k WHERE k.key = p_key FOR UPDATE;
  IF l.key IS NULL THEN
    RETURN NULL;
  END IF;
  found := CASE WHEN l.open_until IS NOT NULL THEN 'open'
                WHEN l.held_at IS NOT NULL OR l.paused_until > t THEN 'paused' END;
  UPDATE detent.rate_limit k
     SET paused_until = NULL, held_at = NULL, throttled = 0, throttled_at = NULL, open_until = NULL, tokens = k.burst,
         refilled_at = greatest(k.refilled_at, t)
   WHERE k.key = p_key;
  IF found IS NOT NULL THEN
    PERFORM detent.limit_log(p_key, found, 'closed', 'reset', p_actor, p_reason, t);
    PERFORM detent.wake_waiters(false);
  END IF;
  RETURN found IS NOT NULL;
END $$;
