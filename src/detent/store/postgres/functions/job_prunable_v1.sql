-- job_prunable: the finished jobs that job_prune would delete.
-- takes:   the horizon, the id to go on after, how many jobs to look at; of which states (null is any)
-- gives:   their ids, and the id to go on after, null at the end
-- locks:   these jobs, so that nothing is added to their records until they are gone; whatever others hold is passed over
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_prunable_v1(
  p_before timestamptz, p_after_id bigint, p_limit integer, p_states text[] DEFAULT NULL
) RETURNS TABLE (ids bigint[], next_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  looked bigint[];
BEGIN
  looked := ARRAY(SELECT j.id FROM detent.job j WHERE j.id > p_after_id ORDER BY j.id LIMIT p_limit);
  ids := ARRAY(
    SELECT j.id FROM detent.job j
     WHERE j.id = ANY (looked) AND detent.job_may_go(j.finished_at, j.run_id, p_before)
       AND j.finished_at >= j.created_at AND (p_states IS NULL OR j.state = ANY (p_states))
     ORDER BY j.id FOR UPDATE SKIP LOCKED);
  next_id := CASE WHEN cardinality(looked) = p_limit THEN looked[p_limit] END;
  RETURN NEXT;
END $$;
