-- Somebody may have work now: tell those who wait, once, and only while somebody does. The first who tells takes the sign
-- down, so that many enqueuers pay for one NOTIFY, which lets commits queue up behind one another.
-- Inside a caller's own transaction (p_always) the row is left alone: it would stay locked for as long as that lasts.
CREATE OR REPLACE FUNCTION detent.wake_waiters(p_always boolean) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF NOT p_always THEN
    PERFORM 1 FROM detent.service s WHERE s.name = 'wake' AND s.expires_at > detent.clock() FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
      RETURN;
    END IF;
    UPDATE detent.service SET expires_at = '-infinity' WHERE name = 'wake';
  END IF;
  PERFORM pg_notify('detent', '');
END $$;
