-- job_events: the lines of a job.
-- takes:   the job, the line to go on after, how many
-- gives:   lines in order
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_events_v1(p_job_id bigint, p_after_seq integer, p_limit integer)
RETURNS SETOF detent.event
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT e.* FROM detent.event e WHERE e.job_id = p_job_id AND e.seq > p_after_seq ORDER BY e.seq LIMIT p_limit;
END $$;
