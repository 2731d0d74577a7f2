-- mismatch_list: targets of a run that were found not to be what they should.
-- takes:   the run, whether only those that are open, after which target, how many
-- gives:   them, with their refs, by number, then look
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.mismatch_list_v1(p_run_id bigint, p_open boolean, p_after_n integer, p_limit integer)
RETURNS TABLE (mismatch detent.mismatch, ref text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
    SELECT m, g.ref FROM detent.mismatch m JOIN detent.target g ON g.run_id = m.run_id AND g.n = m.n
     WHERE m.run_id = p_run_id AND m.n > p_after_n AND (NOT p_open OR m.resolved_at IS NULL)
     ORDER BY m.n, m.no LIMIT p_limit;
END $$;
