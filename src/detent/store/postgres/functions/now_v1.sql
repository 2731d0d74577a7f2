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
