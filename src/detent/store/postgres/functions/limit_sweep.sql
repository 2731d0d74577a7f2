-- Take away the slots of a limit that no longer count. A success since the other side last said no closes the breaker.
-- The limit's row is locked.
CREATE OR REPLACE FUNCTION detent.limit_sweep(p_key text, t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  done     timestamptz;
  was_open boolean;
BEGIN
  WITH gone AS (
    DELETE FROM detent.limit_slot s
     WHERE s.limit_key = p_key AND NOT EXISTS (
       SELECT 1 FROM detent.job j WHERE j.id = s.job_id AND j.attempt = s.attempt AND j.state = 'running')
    RETURNING s.job_id, s.attempt
  )
  SELECT max(e.done_at) INTO done FROM gone g JOIN detent.execution e ON e.job_id = g.job_id AND e.attempt = g.attempt;
  IF done IS NULL THEN
    RETURN;
  END IF;
  SELECT l.open_until IS NOT NULL INTO was_open FROM detent.rate_limit l WHERE l.key = p_key AND l.throttled_at <= done;
  IF FOUND THEN
    UPDATE detent.rate_limit l SET throttled = 0, throttled_at = NULL, open_until = NULL WHERE l.key = p_key;
    IF was_open THEN
      PERFORM detent.limit_log(p_key, 'open', 'closed', 'close', 'system', 'an attempt has succeeded', t);
    END IF;
  END IF;
END $$;
