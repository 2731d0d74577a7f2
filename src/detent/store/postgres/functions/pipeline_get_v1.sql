-- pipeline_get: a run as it stands.
-- takes:   its id
-- gives:   its row, or nothing
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.pipeline_get_v1(p_run_id bigint) RETURNS SETOF detent.pipeline_runs
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT r.* FROM detent.pipeline_runs r WHERE r.id = p_run_id;
END $$;
