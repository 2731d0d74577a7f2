-- ops_list: ops runs, the newest first.
-- takes:   project, environment and state (null is any), the id to stay below, how many
-- gives:   runs as they stand
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.ops_list_v1(
  p_project_id text DEFAULT NULL, p_env text DEFAULT NULL, p_state text DEFAULT NULL, p_before_id bigint DEFAULT NULL,
  p_limit integer DEFAULT 100
) RETURNS SETOF detent.ops_runs
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT v.* FROM detent.ops_runs v
     WHERE (p_project_id IS NULL OR v.project_id = p_project_id) AND (p_env IS NULL OR v.env = p_env)
       AND (p_state IS NULL OR v.state = p_state) AND (p_before_id IS NULL OR v.job_id < p_before_id)
     ORDER BY v.job_id DESC LIMIT p_limit;
END $$;
