-- The other side said no to a job: the limit of its task pauses for everybody, and after more than five in a row its
-- breaker opens for a minute. The attempt has ended.
CREATE OR REPLACE FUNCTION detent.limit_throttled(p_task text, p_delay double precision, t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  found_key text;
BEGIN
  SELECT l.key INTO found_key FROM detent.rate_limit l
   WHERE l.key = (SELECT m.limit_key FROM detent.limit_member m WHERE m.kind = 'task' AND m.name = p_task) FOR UPDATE;
  IF found_key IS NOT NULL THEN
    PERFORM detent.limit_sweep(found_key);
    UPDATE detent.rate_limit l
       SET throttled = l.throttled + 1, throttled_at = greatest(l.throttled_at, t),
           paused_until = greatest(l.paused_until, t + make_interval(secs => p_delay)),
           open_until = CASE WHEN l.throttled >= 5 THEN greatest(l.open_until, t + interval '60 seconds') ELSE l.open_until END
     WHERE l.key = found_key;
  END IF;
END $$;
