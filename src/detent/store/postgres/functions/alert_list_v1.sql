-- alert_list: alerts as they stand.
-- takes:   a state (null is any), how many
-- gives:   those that fire first, the newest of each first
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_list_v1(p_state text, p_limit integer) RETURNS SETOF detent.alert
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT a.* FROM detent.alert a WHERE p_state IS NULL OR a.state = p_state
     ORDER BY a.state COLLATE "C", a.since DESC, a.policy COLLATE "C", a.scope COLLATE "C" LIMIT p_limit;
END $$;
