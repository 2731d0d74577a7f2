-- counts: jobs by tenant, queue and state, now.
-- takes:   nothing
-- gives:   one row per tenant, queue and state that occurs
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.counts_v1() RETURNS TABLE (tenant text, queue text, state text, jobs bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT c.tenant, c.queue, c.state, sum(c.jobs)::bigint FROM detent.job_counts c
     GROUP BY c.tenant, c.queue, c.state ORDER BY c.tenant COLLATE "C", c.queue COLLATE "C", c.state COLLATE "C";
END $$;
