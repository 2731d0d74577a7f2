-- cancel_find: which of these running attempts are to be cancelled.
-- takes:   jobs and their attempts
-- gives:   those that run and have a cancel request, by job
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.cancel_find_v1(p_ids bigint[], p_attempts integer[])
RETURNS TABLE (job_id bigint, attempt integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT j.id, j.attempt
      FROM unnest(p_ids, p_attempts) AS u (id, attempt)
      JOIN detent.job j ON j.id = u.id AND j.attempt = u.attempt
     WHERE j.state = 'running' AND j.cancel_requested_at IS NOT NULL
     ORDER BY j.id;
END $$;
