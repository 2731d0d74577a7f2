-- job_executions: every attempt of a job, ended or in flight, in order.
-- takes:   the job
-- gives:   rows of the view executions; the one in flight is found from the job, not through all leases
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_executions_v1(p_job_id bigint) RETURNS SETOF detent.executions
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT e.job_id, e.attempt, CASE WHEN e.outcome = 'done' THEN 'done' ELSE 'aborted' END, e.worker, e.leased_at,
           e.started_at, e.committed_at, e.done_at, e.aborted_at, e.outcome, e.error, e.next_state, e.next_due_at,
           e.counted, NULL::bigint, NULL::timestamptz
      FROM detent.execution e WHERE e.job_id = p_job_id
    UNION ALL
    SELECT j.id, j.attempt,
           CASE WHEN j.committed_at IS NOT NULL THEN 'committed' WHEN j.started_at IS NOT NULL THEN 'in_progress'
                ELSE 'leased' END,
           l.worker, j.leased_at, j.started_at, j.committed_at, NULL, NULL, NULL, NULL, NULL, NULL, NULL, l.id, l.expires_at
      FROM detent.job j JOIN detent.lease l ON l.id = j.lease_id
     WHERE j.id = p_job_id AND j.state = 'running'
     ORDER BY 2;
END $$;
