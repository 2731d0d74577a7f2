-- declaration_list: what is declared in code.
-- takes:   nothing
-- gives:   the newest declaration of each thing, by kind and name; not of things that were removed
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.declaration_list_v1() RETURNS SETOF detent.declaration
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT d.* FROM detent.declaration d
     WHERE d.fingerprint <> ''
       AND d.n = (SELECT max(o.n) FROM detent.declaration o WHERE o.kind = d.kind AND o.name = d.name)
     ORDER BY d.kind COLLATE "C", d.name COLLATE "C";
END $$;
