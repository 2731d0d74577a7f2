-- identity_list: the identities the database has had.
-- takes:   nothing
-- gives:   them, oldest first
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.identity_list_v1() RETURNS SETOF detent.identity
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT i.* FROM detent.identity i ORDER BY i.n;
END $$;
