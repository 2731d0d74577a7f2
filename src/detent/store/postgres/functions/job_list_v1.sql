-- job_list: jobs that fit a filter.
-- takes:   state, task, queue, tenant (null is any), the id to go on after, how many
-- gives:   jobs by ascending id
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_list_v1(
  p_state text, p_task text, p_queue text, p_tenant text, p_after_id bigint, p_limit integer
) RETURNS SETOF detent.job
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
    SELECT j.* FROM detent.job j
     WHERE j.id > p_after_id
       AND (p_state IS NULL OR j.state = p_state) AND (p_task IS NULL OR j.task = p_task)
       AND (p_queue IS NULL OR j.queue = p_queue) AND (p_tenant IS NULL OR j.tenant = p_tenant)
     ORDER BY j.id LIMIT p_limit;
END $$;
