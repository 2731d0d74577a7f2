-- job_count: how many jobs fit a filter.
-- takes:   state, task, queue, tenant (null is any)
-- gives:   how many
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_count_v1(p_state text, p_task text, p_queue text, p_tenant text) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN (SELECT coalesce(sum(c.jobs), 0)::bigint FROM detent.job_counts c
           WHERE (p_state IS NULL OR c.state = p_state) AND (p_task IS NULL OR c.task = p_task)
             AND (p_queue IS NULL OR c.queue = p_queue) AND (p_tenant IS NULL OR c.tenant = p_tenant));
END $$;
