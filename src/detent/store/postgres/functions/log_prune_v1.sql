-- log_prune: delete lines of the log that belong to no job and that nobody needs, and horizons that were superseded.
-- takes:   the horizon, the line to go on after, how many lines to look at, who
-- gives:   how many lines went, and the line to go on after, null at the end
-- locks:   the lines that go
-- refuses: nothing; what the guards keep stays
CREATE OR REPLACE FUNCTION detent.log_prune_v1(p_before timestamptz, p_after bigint, p_limit integer, p_actor text)
RETURNS TABLE (lines integer, next_n bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  looked bigint[];
  old    bigint[];
  some_old boolean;
BEGIN
  INSERT INTO detent.horizon (before, actor, at)
    SELECT p_before, p_actor, detent.clock() WHERE NOT EXISTS (SELECT 1 FROM detent.horizon h WHERE h.before >= p_before);
  DELETE FROM detent.horizon WHERE n = ANY (ARRAY(
    SELECT h.n FROM detent.horizon h
     WHERE h.before < p_before AND h.at < p_before AND h.before < (SELECT max(m.before) FROM detent.horizon m)
     ORDER BY h.before LIMIT p_limit));
  SELECT array_agg(a.n ORDER BY a.n), array_agg(a.n) FILTER (WHERE a.at < p_before AND a.job_id IS NULL), bool_or(a.at < p_before)
    INTO looked, old, some_old
    FROM (SELECT l.n, l.at, l.job_id FROM detent.transition_log l WHERE l.n > p_after ORDER BY l.n LIMIT p_limit) a;
  DELETE FROM detent.transition_log o
   WHERE o.n = ANY (old)
     AND CASE o.entity
           WHEN 'batch_run' THEN NOT EXISTS (SELECT 1 FROM detent.batch_run b WHERE b.id = o.entity_id::bigint)
           WHEN 'pipeline_run' THEN NOT EXISTS (SELECT 1 FROM detent.pipeline_run r WHERE r.id = o.entity_id::bigint)
           ELSE EXISTS (SELECT 1 FROM detent.transition_log l
                         WHERE l.job_id IS NULL AND l.entity = o.entity AND l.entity_id = o.entity_id AND l.n > o.n AND l.at < p_before)
         END;
  GET DIAGNOSTICS lines = ROW_COUNT;
  -- Lines are written in the order of time, but for those of one moment: a portion without an old line is the last one.
  next_n := CASE WHEN cardinality(looked) = p_limit AND some_old THEN looked[p_limit] END;
  RETURN NEXT;
END $$;
