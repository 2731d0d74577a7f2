-- counts_as_of: jobs by tenant, queue and state at a past moment, folded from the record.
-- takes:   the moment
-- gives:   one row per tenant, queue and state that occurred
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.counts_as_of_v1(p_at timestamptz)
RETURNS TABLE (tenant text, queue text, state text, jobs bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    WITH then_was AS (
      SELECT DISTINCT ON (v.job_id) v.job_id, v.to_state FROM detent.transition v
       WHERE v.entity = 'job' AND v.at <= p_at
       ORDER BY v.job_id, v.attempt DESC, v.rank DESC, v.n DESC
    )
    SELECT j.tenant, j.queue, w.to_state, count(*) FROM then_was w JOIN detent.job j ON j.id = w.job_id
     GROUP BY 1, 2, 3 ORDER BY j.tenant COLLATE "C", j.queue COLLATE "C", w.to_state COLLATE "C";
END $$;
