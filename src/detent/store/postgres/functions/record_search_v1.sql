-- record_search: lines of the record that fit, the newest first.
-- takes:   actor, kind of entity, its id, the earliest time (null is any for each); the place to go on after; how many lines to
--          give, and how many to look at
-- gives:   lines that fit; and, if it stopped looking before the end, the last line it looked at, which does not fit
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.record_search_v1(
  p_actor text, p_entity text, p_entity_id text, p_since timestamptz, p_after_at timestamptz, p_after_n bigint,
  p_limit integer, p_looks integer
) RETURNS TABLE (fits boolean, line detent.transition_log)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  step   integer := p_limit;  -- without other filters the first portion is the page
  of_job bigint := CASE WHEN p_entity = 'job' AND p_entity_id ~ '^[0-9]{1,18}$' THEN p_entity_id::bigint END;
  found  integer := 0;
  looked integer := 0;
  more   integer;
  ns     bigint[];
BEGIN
  LOOP
    IF of_job IS NOT NULL THEN
      ns := ARRAY(SELECT l.n FROM detent.transition_log l
                   WHERE l.job_id = of_job AND (l.at, l.n) < (p_after_at, p_after_n) ORDER BY l.n DESC LIMIT step);
    ELSIF p_entity_id IS NOT NULL THEN
      ns := ARRAY(SELECT l.n FROM detent.transition_log l
                   WHERE l.job_id IS NULL AND l.entity = p_entity AND l.entity_id = p_entity_id
                     AND (l.at, l.n) < (p_after_at, p_after_n) ORDER BY l.n DESC LIMIT step);
    ELSIF p_actor IS NOT NULL THEN
      ns := ARRAY(SELECT l.n FROM detent.transition_log l
                   WHERE l.actor = p_actor AND (l.at, l.n) < (p_after_at, p_after_n) AND l.at >= p_since
                   ORDER BY l.at DESC, l.n DESC LIMIT step);
    ELSE
      ns := ARRAY(SELECT l.n FROM detent.transition_log l
                   WHERE (l.at, l.n) < (p_after_at, p_after_n) AND l.at >= p_since ORDER BY l.at DESC, l.n DESC LIMIT step);
    END IF;
    RETURN QUERY
      SELECT true, l FROM detent.transition_log l
       WHERE l.n = ANY (ns) AND l.at >= p_since AND (p_actor IS NULL OR l.actor = p_actor)
         AND (p_entity IS NULL OR l.entity = p_entity) AND (p_entity_id IS NULL OR l.entity_id = p_entity_id)
       ORDER BY l.at DESC, l.n DESC LIMIT p_limit - found;
    GET DIAGNOSTICS more = ROW_COUNT;
    found := found + more;
    looked := looked + cardinality(ns);
    EXIT WHEN found >= p_limit OR cardinality(ns) < step;
    IF looked >= p_looks THEN
      RETURN QUERY SELECT false, l FROM detent.transition_log l WHERE l.n = ns[step];
      EXIT;
    END IF;
    SELECT l.at, l.n INTO p_after_at, p_after_n FROM detent.transition_log l WHERE l.n = ns[step];
    step := greatest(p_limit, 1000);
  END LOOP;
END $$;
