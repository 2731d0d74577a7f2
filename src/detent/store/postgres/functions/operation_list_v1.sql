-- operation_list: operations, the newest first.
-- takes:   the state (null is any), how many
-- gives:   operations
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.operation_list_v1(p_state text, p_limit integer) RETURNS SETOF detent.operation
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT o.* FROM detent.operation o WHERE p_state IS NULL OR o.state = p_state ORDER BY o.id DESC LIMIT p_limit;
END $$;
