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
