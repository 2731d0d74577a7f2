-- pipeline_list: runs that fit, the newest first.
-- takes:   state, name, tenant (null is any), the id to go on before, at most how many
-- gives:   their rows
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.pipeline_list_v1(
  p_state text, p_name text, p_tenant text, p_before_id bigint, p_limit integer
) RETURNS SETOF detent.pipeline_runs
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT r.* FROM detent.pipeline_runs r
     WHERE (p_state IS NULL OR r.state = p_state) AND (p_name IS NULL OR r.name = p_name)
       AND (p_tenant IS NULL OR r.tenant = p_tenant) AND (p_before_id IS NULL OR r.id < p_before_id)
     ORDER BY r.id DESC LIMIT p_limit;
END $$;
