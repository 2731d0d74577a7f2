-- ops_environments: where runs go.
-- takes:   the project (null is any)
-- gives:   environments, by project and name
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.ops_environments_v1(p_project_id text DEFAULT NULL) RETURNS SETOF detent.ops_environment
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT e.* FROM detent.ops_environment e WHERE p_project_id IS NULL OR e.project_id = p_project_id
     ORDER BY e.project_id COLLATE "C", e.name COLLATE "C";
END $$;
