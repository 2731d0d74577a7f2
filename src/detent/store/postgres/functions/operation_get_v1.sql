-- operation_get: an operation as it stands.
-- takes:   its id
-- gives:   its row, or nothing
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.operation_get_v1(p_id bigint) RETURNS SETOF detent.operation
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT o.* FROM detent.operation o WHERE o.id = p_id;
END $$;
