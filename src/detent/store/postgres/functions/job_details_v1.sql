-- job_details: what a list of jobs shows beside their rows.
-- takes:   ids
-- gives:   for each that is there: its key, the worker that holds it or held it last, and its progress: the payload of the
--          newest of its last 100 events in the current attempt that reports one
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_details_v1(p_ids bigint[])
RETURNS TABLE (job_id bigint, key text, worker text, progress text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT j.id, (SELECT k.key FROM detent.job_key k WHERE k.job_id = j.id ORDER BY k.key COLLATE "C" LIMIT 1),
           CASE WHEN j.state = 'running' THEN (SELECT l.worker FROM detent.lease l WHERE l.id = j.lease_id)
                ELSE (SELECT e.worker FROM detent.execution e WHERE e.job_id = j.id ORDER BY e.attempt DESC LIMIT 1) END,
           (SELECT p.payload FROM (SELECT e.payload, e.seq FROM detent.event e
                                    WHERE e.job_id = j.id AND e.attempt = j.attempt ORDER BY e.seq DESC LIMIT 100) p
             WHERE starts_with(p.payload, '{"done":') ORDER BY p.seq DESC LIMIT 1)
      FROM detent.job j WHERE j.id = ANY (p_ids);
END $$;
