-- wake_announce: somebody is about to wait for work.
-- takes:   for how many seconds
-- gives:   nothing
-- locks:   the one row that says so; left alone where it says so for half of that time already
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.wake_announce_v1(p_seconds double precision) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  IF EXISTS (SELECT 1 FROM detent.service s
              WHERE s.name = 'wake' AND s.expires_at >= t + make_interval(secs => p_seconds / 2)) THEN
    RETURN;
  END IF;
  INSERT INTO detent.service (name, holder, term, expires_at)
    VALUES ('wake', 0, 0, t + make_interval(secs => p_seconds))
    ON CONFLICT (name) DO UPDATE SET expires_at = excluded.expires_at;
END $$;
