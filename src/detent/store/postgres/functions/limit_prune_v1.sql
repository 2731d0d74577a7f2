-- limit_prune: delete slots of attempts that have ended, and limits that a template made and that say nothing the template
-- does not: the bucket is full and nothing runs under the key.
-- takes:   the key to go on after, how many limits to look at
-- gives:   how many went, and the key to go on after, null at the end
-- locks:   the limits that have such slots, and the limits that go; whatever others hold stays for a later pass
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.limit_prune_v1(p_after text, p_limit integer) RETURNS TABLE (limits integer, next_key text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t      timestamptz := detent.clock();
  looked text[] := ARRAY(SELECT l.key FROM detent.rate_limit l WHERE l.key > p_after ORDER BY l.key LIMIT p_limit);
  idle   text[];
  gone   text[];
BEGIN
  PERFORM detent.limit_sweep(u.key, t)
     FROM (SELECT l.key FROM detent.rate_limit l
            WHERE l.key = ANY (looked)
              AND EXISTS (
                SELECT 1 FROM detent.limit_slot s
                  LEFT JOIN detent.job j ON j.id = s.job_id AND j.attempt = s.attempt AND j.state = 'running'
                 WHERE s.limit_key = l.key AND j.id IS NULL)
            ORDER BY l.key FOR UPDATE SKIP LOCKED) u;
  idle := ARRAY(
    SELECT l.key FROM detent.rate_limit l
     WHERE l.key = ANY (looked)
       AND l.template IS NOT NULL AND l.held_at IS NULL AND l.open_until IS NULL AND l.throttled = 0
       AND coalesce(l.paused_until <= t, true) AND (l.rate IS NULL OR detent.limit_tokens(l, t) >= l.burst)
       FOR UPDATE SKIP LOCKED);
  -- Slots are looked at after the limits are locked. A claim adds a slot without changing its limit, so a claim that ended
  -- just before the lock would be missed otherwise.
  WITH went AS (
    DELETE FROM detent.rate_limit l
     WHERE l.key = ANY (idle)
       AND NOT EXISTS (
         SELECT 1 FROM detent.limit_slot s
           JOIN detent.job j ON j.id = s.job_id AND j.attempt = s.attempt AND j.state = 'running'
          WHERE s.limit_key = l.key)
    RETURNING key
  )
  SELECT array_agg(w.key) INTO gone FROM went w;
  DELETE FROM detent.limit_slot s WHERE s.limit_key = ANY (gone);
  limits := coalesce(cardinality(gone), 0);
  next_key := CASE WHEN cardinality(looked) = p_limit THEN looked[p_limit] END;
  RETURN NEXT;
END $$;
