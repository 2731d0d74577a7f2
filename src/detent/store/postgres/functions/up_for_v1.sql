-- up_for: for how long the server has been answering. By the server's own clock, which no test replaces.
-- takes:   nothing
-- gives:   seconds
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.up_for_v1() RETURNS double precision
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN extract(epoch FROM clock_timestamp() - pg_postmaster_start_time());
END $$;
