-- now: the database's clock.
-- takes:   nothing
-- gives:   the time
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.now_v1() RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN detent.clock();
END $$;

-- up_for: for how long the server has been up, by the server's own clock, which no test replaces.
-- takes:   nothing
-- gives:   seconds
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.up_for_v1() RETURNS double precision
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN extract(epoch FROM clock_timestamp() - pg_postmaster_start_time());
END $$;

-- installed: which release has installed its functions, triggers, views and state lists in this database.
-- takes:   nothing
-- gives:   the release, the fingerprint of what it installs, and whether it has finished; no row if nothing is installed
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.installed_v1() RETURNS TABLE (release text, fingerprint text, complete boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT i.release, i.fingerprint, i.complete FROM detent.installed i;
END $$;

-- migrations: which steps of the schema this database has taken.
-- takes:   nothing
-- gives:   version, checksum and the oldest code that may run with it
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.migrations_v1() RETURNS TABLE (version integer, checksum text, oldest_code integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT m.version, m.checksum, m.oldest_code FROM detent.migration m ORDER BY m.version;
END $$;

-- wake_announce: record that a worker is about to wait for work.
-- takes:   for how many seconds
-- gives:   nothing
-- locks:   the row `wake`, unless it is set for at least half of that time already
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

-- Wake waiting workers, once, and only if one waits. The first caller removes the row that says so: then many callers pay for
-- one NOTIFY, which makes commits wait for one another.
-- Inside a caller's own transaction (p_always) the row is not touched: it would stay locked until that transaction ends.
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

-- A time that every calendar has: infinity, and what lies before 1970 or beyond 9000, only a damaged row can have.
CREATE OR REPLACE FUNCTION detent.calendar_time(p_at timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_at IS NULL THEN NULL
              ELSE least(greatest(p_at, '1970-01-01 00:00:00+00'::timestamptz), '9000-01-01 00:00:00+00'::timestamptz) END
$$;
