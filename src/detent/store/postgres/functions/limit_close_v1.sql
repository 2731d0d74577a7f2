-- limit_close: close the breakers under which an attempt has succeeded.
-- takes:   the key to go on after, how many open breakers to look at
-- gives:   the key to go on after, null at the end
-- locks:   the limits it looks at; it passes over those that others hold
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.limit_close_v1(p_after text, p_limit integer) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t      timestamptz := detent.clock();
  looked text[] := ARRAY(
    SELECT l.key FROM detent.rate_limit l WHERE l.open_until IS NOT NULL AND l.key > p_after ORDER BY l.key LIMIT p_limit);
BEGIN
  PERFORM detent.limit_sweep(u.key, t)
     FROM (SELECT l.key FROM detent.rate_limit l WHERE l.key = ANY (looked) ORDER BY l.key FOR UPDATE SKIP LOCKED) u;
  RETURN CASE WHEN cardinality(looked) = p_limit THEN looked[p_limit] END;
END $$;
