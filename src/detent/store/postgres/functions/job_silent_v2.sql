-- job_silent: jobs in flight that nothing is heard of.
-- takes:   the queue (null is any), seconds until not begun is stale and until silent is stalled (null is never), how many;
--          what a task says of itself goes before; under which leases (null is any)
-- gives:   them, the longest silent first
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_silent_v2(
  p_queue text, p_stale_after double precision, p_stalled_after double precision, p_limit integer, p_lease_ids bigint[]
) RETURNS TABLE (job_id bigint, attempt integer, queue text, task text, worker text, kind text, since timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
  t timestamptz := detent.clock();
BEGIN
  RETURN QUERY
    SELECT j.id, j.attempt, j.queue, j.task, l.worker,
           CASE WHEN j.started_at IS NULL THEN 'stale' ELSE 'stalled' END, heard.at
      FROM detent.lease l CROSS JOIN LATERAL unnest(l.job_ids) AS held (job_id)
      JOIN detent.job j ON j.id = held.job_id AND j.lease_id = l.id AND j.state = 'running'
      LEFT JOIN detent.task_times s ON s.task = j.task
     CROSS JOIN LATERAL (
       SELECT greatest(j.leased_at, j.started_at, (
         SELECT e.at FROM detent.event e WHERE e.job_id = j.id ORDER BY e.seq DESC LIMIT 1)) AS at) heard
     WHERE l.expires_at > t AND j.committed_at IS NULL AND j.cancel_requested_at IS NULL
       AND (p_queue IS NULL OR j.queue = p_queue) AND (p_lease_ids IS NULL OR l.id = ANY (p_lease_ids))
       AND heard.at <= t - make_interval(secs => CASE WHEN j.started_at IS NULL THEN coalesce(s.stale_after, p_stale_after)
                                                      ELSE coalesce(s.stalled_after, p_stalled_after) END)
     ORDER BY heard.at, j.id LIMIT p_limit;
END $$;
