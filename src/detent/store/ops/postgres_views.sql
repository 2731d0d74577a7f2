-- Ops runs.

-- Every ops run. `cancelled_by` is the actor that requested it while the run was held, or that cancelled it before.
CREATE OR REPLACE VIEW detent.ops_runs AS
  SELECT j.id AS job_id, e.project_id, e.id AS env_id, e.name AS env, r.git_sha, r.git_ref,
         CASE j.state WHEN 'pending' THEN 'queued' WHEN 'succeeded' THEN 'success'
           WHEN 'running' THEN CASE WHEN j.started_at IS NULL THEN 'claimed' ELSE 'running' END ELSE j.state END AS state,
         coalesce(x.worker, (SELECT l.worker FROM detent.lease l WHERE l.id = j.lease_id)) AS claimed_by,
         r.key, coalesce(j.metadata, '{}') AS metadata, r.finish_metadata, j.created_at AS queued_at,
         j.leased_at AS started_at, j.started_at AS begun_at, j.finished_at,
         greatest(j.created_at, j.leased_at, j.started_at, j.finished_at, j.cancel_requested_at,
                  (SELECT v.at FROM detent.event v WHERE v.job_id = j.id ORDER BY v.seq DESC LIMIT 1)) AS updated_at,
         x.outcome,
         CASE WHEN j.state = 'cancelled' THEN coalesce(j.cancel_requested_by, (
           SELECT l.actor FROM detent.transition_log l WHERE l.job_id = j.id AND l.to_state = 'cancelled'
            ORDER BY l.n DESC LIMIT 1)) END AS cancelled_by,
         CASE WHEN j.state = 'cancelled' THEN coalesce(j.cancel_reason, (
           SELECT l.reason FROM detent.transition_log l WHERE l.job_id = j.id AND l.to_state = 'cancelled'
            ORDER BY l.n DESC LIMIT 1)) END AS cancel_reason
    FROM detent.ops_run r
    JOIN detent.job j ON j.id = r.job_id
    JOIN detent.ops_environment e ON e.id = r.environment_id
    LEFT JOIN detent.execution x ON x.job_id = j.id AND x.attempt = j.attempt;
