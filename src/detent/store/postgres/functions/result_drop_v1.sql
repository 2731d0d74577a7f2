-- result_drop: drop results that were to be kept for a time only; the jobs stay.
-- takes:   the id to go on after, how many jobs to look at
-- gives:   how many results went, and the id to go on after, null at the end
-- locks:   the jobs whose results go; whatever others hold stays for a later pass
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.result_drop_v1(p_after_id bigint, p_limit integer)
RETURNS TABLE (results integer, next_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t      timestamptz := detent.clock();
  looked bigint[];
  over   bigint[];
BEGIN
  looked := ARRAY(SELECT j.id FROM detent.job j WHERE j.id > p_after_id ORDER BY j.id LIMIT p_limit);
  over := ARRAY(
    SELECT j.id FROM detent.job j
     WHERE j.id = ANY (looked) AND j.state = 'succeeded' AND j.result IS NOT NULL
       AND j.finished_at <= (SELECT t - make_interval(secs => s.result_ttl) FROM detent.task_times s WHERE s.task = j.task)
       FOR UPDATE SKIP LOCKED);
  UPDATE detent.job j SET result = NULL, result_dropped_at = t WHERE j.id = ANY (over);
  results := cardinality(over);
  next_id := CASE WHEN cardinality(looked) = p_limit THEN looked[p_limit] END;
  RETURN NEXT;
END $$;
