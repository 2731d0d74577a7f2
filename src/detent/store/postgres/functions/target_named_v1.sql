-- target_named: targets by their refs, as an action asks for them.
-- takes:   the run, the refs
-- gives:   number, ref, state, and whether it could be previewed
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.target_named_v1(p_run_id bigint, p_refs text[])
RETURNS TABLE (n integer, ref text, state text, is_previewed boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT found.n, found.ref, found.state, found.changed IS NOT NULL FROM (SELECT DISTINCT r.ref FROM unnest(p_refs) AS r (ref)) u
     CROSS JOIN LATERAL (SELECT g.* FROM detent.target g WHERE g.run_id = p_run_id AND g.ref = u.ref OFFSET 0) found
     ORDER BY found.n;
END $$;
