-- target_list: targets of a run, in the order of the plan.
-- takes:   the run, state and changed (null is any), refs (null is any), after which number, how many
-- gives:   targets, and how often each was tried
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.target_list_v1(
  p_run_id bigint, p_state text, p_changed boolean, p_refs text[], p_after_n integer, p_limit integer
) RETURNS TABLE (target detent.target, attempts integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET enable_sort = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
-- No sort: a planner that knows the table when it was empty would sort the whole run for each portion of it.
BEGIN
  IF p_refs IS NULL THEN
    RETURN QUERY
      SELECT g, coalesce((SELECT j.attempt FROM detent.job j WHERE j.id = g.apply_job_id), 0)
        FROM detent.target g
       WHERE g.run_id = p_run_id AND g.n > p_after_n AND (p_state IS NULL OR g.state = p_state)
         AND (p_changed IS NULL OR g.changed = p_changed)
       ORDER BY g.n LIMIT p_limit;
  ELSE
    RETURN QUERY
      SELECT g.whole, coalesce((SELECT j.attempt FROM detent.job j WHERE j.id = (g.whole).apply_job_id), 0)
        FROM (SELECT DISTINCT r.ref FROM unnest(p_refs) AS r (ref)) u
       CROSS JOIN LATERAL (SELECT k AS whole, k.n, k.state, k.changed
                             FROM detent.target k WHERE k.run_id = p_run_id AND k.ref = u.ref OFFSET 0) g
       WHERE g.n > p_after_n AND (p_state IS NULL OR g.state = p_state) AND (p_changed IS NULL OR g.changed = p_changed)
       ORDER BY g.n LIMIT p_limit;
  END IF;
END $$;
