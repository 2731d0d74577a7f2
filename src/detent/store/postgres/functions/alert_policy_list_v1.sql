-- alert_policy_list: what was set of policies.
-- takes:   nothing
-- gives:   them, by name
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_policy_list_v1() RETURNS SETOF detent.alert_policy
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT p.* FROM detent.alert_policy p ORDER BY p.name COLLATE "C";
END $$;
