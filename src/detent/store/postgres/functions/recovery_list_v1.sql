-- recovery_list: the queues whose silent jobs are stopped without a person's approval.
-- takes:   nothing
-- gives:   them, by name
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.recovery_list_v1() RETURNS SETOF detent.recovery
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT r.* FROM detent.recovery r ORDER BY r.queue COLLATE "C";
END $$;
