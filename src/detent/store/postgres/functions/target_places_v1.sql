-- target_places: which of these refs and numbers are taken.
-- takes:   the run, the first number, the refs of it and the following
-- gives:   the targets that have one of them
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.target_places_v1(p_run_id bigint, p_first_n integer, p_refs text[]) RETURNS TABLE (n integer, ref text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  -- One look by its own index for each: a planner that knows the table when it was empty would rather walk through the run.
  RETURN QUERY
    SELECT found.n, found.ref FROM unnest(p_refs) AS u (ref)
     CROSS JOIN LATERAL (SELECT g.n, g.ref FROM detent.target g WHERE g.run_id = p_run_id AND g.ref = u.ref OFFSET 0) found
    UNION
    SELECT g.n, g.ref FROM detent.target g
     WHERE g.run_id = p_run_id AND g.n BETWEEN p_first_n AND p_first_n + cardinality(p_refs) - 1;
END $$;
