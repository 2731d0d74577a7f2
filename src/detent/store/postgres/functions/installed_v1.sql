-- installed: which release has put its functions, triggers, views and state lists in this database.
-- takes:   nothing
-- gives:   the release, the fingerprint of what it installs, and whether it has finished; no row if nothing is installed
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.installed_v1() RETURNS TABLE (release text, fingerprint text, complete boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT i.release, i.fingerprint, i.complete FROM detent.installed i;
END $$;
