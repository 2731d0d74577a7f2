-- The other side said no to a job: its limit pauses for everybody, and after more than five in a row its breaker opens
-- for a minute. The attempt has ended.
CREATE OR REPLACE FUNCTION detent.limit_throttled(j detent.job, p_delay double precision, t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  of_task   text := (SELECT m.limit_key FROM detent.limit_member m WHERE m.kind = 'task' AND m.name = j.task);
  found_key text;
  l         detent.rate_limit;
BEGIN
  IF of_task IS NULL THEN
    RETURN;
  END IF;
  IF j.limit_key IS NOT NULL THEN
    PERFORM detent.limit_make(j.limit_key, of_task, t);
  END IF;
  SELECT k.key INTO found_key FROM detent.rate_limit k WHERE k.key = coalesce(j.limit_key, of_task) FOR UPDATE;
  IF found_key IS NOT NULL THEN
    PERFORM detent.limit_sweep(found_key, t);
    UPDATE detent.rate_limit k
       SET throttled = k.throttled + 1, throttled_at = greatest(k.throttled_at, t),
           paused_until = greatest(k.paused_until, t + make_interval(secs => p_delay))
     WHERE k.key = found_key
    RETURNING k.* INTO l;
    IF l.throttled > 5 THEN
      UPDATE detent.rate_limit k SET open_until = greatest(k.open_until, t + interval '60 seconds') WHERE k.key = found_key;
      IF l.open_until IS NULL THEN
        PERFORM detent.limit_log(
          found_key, 'closed', 'open', 'open', 'system', l.throttled || ' attempts in a row were throttled', t);
      END IF;
    END IF;
  END IF;
END $$;
