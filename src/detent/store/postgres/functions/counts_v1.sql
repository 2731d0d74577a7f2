-- counts: jobs by tenant, queue and state, now.
-- takes:   nothing
-- gives:   one row per tenant, queue and state that occurs
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.counts_v1() RETURNS TABLE (tenant text, queue text, state text, jobs bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT j.tenant, j.queue, j.state, count(*) FROM detent.job j
     GROUP BY 1, 2, 3 ORDER BY j.tenant COLLATE "C", j.queue COLLATE "C", j.state COLLATE "C";
END $$;
