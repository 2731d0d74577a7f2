-- ops_get: ops runs as they stand.
-- takes:   the ids of their jobs
-- gives:   those that are there
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.ops_get_v1(p_ids bigint[]) RETURNS SETOF detent.ops_runs
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT v.* FROM detent.ops_runs v WHERE v.job_id = ANY (p_ids);
END $$;
