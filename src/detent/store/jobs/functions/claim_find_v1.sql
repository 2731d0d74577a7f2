-- claim_find: the jobs still held under a lease, for a claim whose answer was lost.
-- takes:   the lease
-- gives:   its running jobs, by id
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.claim_find_v1(p_lease_id bigint) RETURNS TABLE (
  job_id bigint, attempt integer, task text, payload text, tenant text, queue text, metadata text, correlation_id text,
  traceparent text, run_id bigint, spared integer, attempts_max integer, committed boolean
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
    SELECT j.id, j.attempt, j.task, j.payload, j.tenant, j.queue, j.metadata, j.correlation_id, j.traceparent, j.run_id,
           j.spared, j.attempts_max, j.committed_at IS NOT NULL
      FROM detent.job j
     WHERE j.id = ANY ((SELECT l.job_ids FROM detent.lease l WHERE l.id = p_lease_id)::bigint[])
       AND j.lease_id = p_lease_id AND j.state = 'running'
     ORDER BY j.id;
END $$;
