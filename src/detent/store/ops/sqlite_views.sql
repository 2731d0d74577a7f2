-- Ops runs.

-- Every ops run. `cancelled_by` is the actor that requested it while the run was held, or that cancelled it before.
CREATE VIEW detent_ops_runs AS
  SELECT r.job_id, e.project_id, e.id AS env_id, e.name AS env, r.git_sha, r.git_ref,
         CASE j.state WHEN 'pending' THEN 'queued' WHEN 'succeeded' THEN 'success'
           WHEN 'running' THEN CASE WHEN j.started_at IS NULL THEN 'claimed' ELSE 'running' END ELSE j.state END AS state,
         coalesce(x.worker, (SELECT l.worker FROM detent_lease l WHERE l.id = j.lease_id)) AS claimed_by,
         r.key, coalesce(j.metadata, '{}') AS metadata, r.finish_metadata, j.created_at AS queued_at,
         j.leased_at AS started_at, j.started_at AS begun_at, j.finished_at,
         max(j.created_at, coalesce(j.leased_at, 0), coalesce(j.started_at, 0), coalesce(j.finished_at, 0),
             coalesce(j.cancel_requested_at, 0), coalesce((
               SELECT v.at FROM detent_event v WHERE v.job_id = j.id ORDER BY v.seq DESC LIMIT 1), 0)) AS updated_at,
         x.outcome,
         CASE WHEN j.state = 'cancelled' THEN coalesce(j.cancel_requested_by, (
           SELECT l.actor FROM detent_transition_log l WHERE l.job_id = j.id AND l.to_state = 'cancelled'
            ORDER BY l.n DESC LIMIT 1)) END AS cancelled_by,
         CASE WHEN j.state = 'cancelled' THEN coalesce(j.cancel_reason, (
           SELECT l.reason FROM detent_transition_log l WHERE l.job_id = j.id AND l.to_state = 'cancelled'
            ORDER BY l.n DESC LIMIT 1)) END AS cancel_reason
    FROM detent_ops_run r
   CROSS JOIN detent_job j ON j.id = r.job_id
    JOIN detent_ops_environment e ON e.id = r.environment_id
    LEFT JOIN detent_execution x ON x.job_id = j.id AND x.attempt = j.attempt;
