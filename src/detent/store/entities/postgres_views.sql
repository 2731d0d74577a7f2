-- Attempts and every recorded change, for reading.

-- Every attempt: the ended ones, and those in flight, found through their leases.
CREATE OR REPLACE VIEW detent.executions AS
  SELECT e.job_id, e.attempt, CASE WHEN e.outcome = 'done' THEN 'done' ELSE 'aborted' END AS state, e.worker,
         e.leased_at, e.started_at, e.committed_at, e.done_at, e.aborted_at, e.outcome, e.error,
         e.next_state, e.next_due_at, e.counted, NULL::bigint AS lease_id, NULL::timestamptz AS expires_at,
         e.suspect
    FROM detent.execution e
  UNION ALL
  SELECT j.id, j.attempt,
         CASE WHEN j.committed_at IS NOT NULL THEN 'committed' WHEN j.started_at IS NOT NULL THEN 'in_progress' ELSE 'leased' END,
         l.worker, j.leased_at, j.started_at, j.committed_at, NULL, NULL, NULL, NULL, NULL, NULL, NULL, l.id, l.expires_at,
         NULL
    FROM detent.lease l CROSS JOIN LATERAL unnest(l.job_ids) AS held(job_id)
    JOIN detent.job j ON j.id = held.job_id AND j.lease_id = l.id AND j.state = 'running';

-- The moves of a target, one line each: they are read out of the record of its jobs, as those of a job are out of its executions.
CREATE OR REPLACE VIEW detent.target_transition AS
  SELECT g.run_id, g.n AS target_n, b.tenant, 'target' AS entity, NULL::bigint AS job_id, g.run_id || '/' || g.n AS entity_id, NULL::text AS from_state, 'preview' AS to_state,
         'plan' AS trigger, g.created_at AS at, 'worker' AS actor, NULL::text AS reason, NULL::text AS metadata, b.correlation_id, false AS forced,
         0 AS attempt, 0 AS rank, 0::bigint AS n
    FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL::bigint, g.run_id || '/' || g.n, 'preview', 'queued', 'queue', g.queued_at, 'client', NULL, NULL::text, b.correlation_id, false, 0, 1, 0
    FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id
   WHERE g.queued_at IS NOT NULL
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL::bigint, g.run_id || '/' || g.n, 'queued', 'applying', 'begin', e.leased_at, e.worker, NULL, NULL::text, b.correlation_id, false, e.attempt, 10, 0
    FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id JOIN detent.execution e ON e.job_id = g.apply_job_id
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL::bigint, g.run_id || '/' || g.n, 'queued', 'applying', 'begin', j.leased_at, coalesce((SELECT l.worker FROM detent.lease l WHERE l.id = j.lease_id), ''), NULL, NULL::text, b.correlation_id, false, j.attempt, 10, 0
    FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id JOIN detent.job j ON j.id = g.apply_job_id
   WHERE j.state = 'running'
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL::bigint, g.run_id || '/' || g.n, 'applying', CASE e.next_state WHEN 'succeeded' THEN 'applied' WHEN 'pending' THEN 'queued' ELSE 'failed' END, CASE e.next_state WHEN 'succeeded' THEN 'complete' WHEN 'pending' THEN 'back_off' ELSE 'fail' END, coalesce(e.done_at, e.aborted_at), CASE WHEN e.outcome = 'expired' THEN 'reaper' ELSE e.worker END, e.outcome, NULL::text, b.correlation_id, false, e.attempt, 50, 0
    FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id JOIN detent.execution e ON e.job_id = g.apply_job_id
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL::bigint, g.run_id || '/' || g.n, 'failed', 'queued', 'retry_failed', l.at, l.actor, l.reason, NULL::text, b.correlation_id, l.forced, l.attempt, 90, l.n
    FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id JOIN detent.transition_log l ON l.job_id = g.apply_job_id AND l.trigger <> 'repair'
   WHERE l.from_state IN ('failed', 'quarantined', 'cancelled') AND l.to_state IN ('pending', 'succeeded')
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL::bigint, g.run_id || '/' || g.n, 'queued', 'applying', 'begin', l.at, l.actor, l.reason, NULL::text, b.correlation_id, l.forced, l.attempt, 91, l.n
    FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id JOIN detent.transition_log l ON l.job_id = g.apply_job_id AND l.trigger <> 'repair'
   WHERE l.from_state = 'pending' AND l.to_state IN ('cancelled', 'quarantined')
      OR l.from_state IN ('failed', 'quarantined', 'cancelled') AND l.to_state = 'succeeded'
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL::bigint, g.run_id || '/' || g.n, 'applying', CASE l.to_state WHEN 'succeeded' THEN 'applied' ELSE 'failed' END, CASE l.to_state WHEN 'succeeded' THEN 'complete' ELSE 'fail' END, l.at, l.actor, l.reason, NULL::text, b.correlation_id, l.forced, l.attempt, 92, l.n
    FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id JOIN detent.transition_log l ON l.job_id = g.apply_job_id AND l.trigger <> 'repair'
   WHERE l.from_state = 'pending' AND l.to_state IN ('cancelled', 'quarantined')
      OR l.from_state IN ('failed', 'quarantined', 'cancelled') AND l.to_state = 'succeeded'
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL::bigint, g.run_id || '/' || g.n, 'applied', 'rolled_back', 'roll_back', g.rolled_back_at, b.rollback_requested_by, b.rollback_reason, NULL::text, b.correlation_id, false, j.attempt, 95, 0
    FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id JOIN detent.job j ON j.id = g.apply_job_id
   WHERE g.rolled_back_at IS NOT NULL
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL::bigint, g.run_id || '/' || g.n, l.from_state, l.to_state, l.trigger, l.at, l.actor, l.reason, NULL::text, b.correlation_id, l.forced, l.attempt, 96, l.n
    FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id JOIN detent.transition_log l ON l.job_id IS NULL AND l.entity = 'target' AND l.entity_id = g.run_id || '/' || g.n;

-- Attempts with what the lines of their moves need.
CREATE OR REPLACE VIEW detent.attempt_to_read AS
  SELECT e.job_id, e.attempt, e.worker, e.leased_at, e.started_at, e.committed_at,
         coalesce(e.done_at, e.aborted_at) AS ended_at, e.outcome, e.error, e.next_state,
         j.tenant, j.correlation_id
    FROM detent.execution e JOIN detent.job j ON j.id = e.job_id
  UNION ALL
  SELECT j.id, j.attempt, coalesce((SELECT l.worker FROM detent.lease l WHERE l.id = j.lease_id), ''), j.leased_at, j.started_at, j.committed_at,
         NULL, NULL, NULL, NULL, j.tenant, j.correlation_id
    FROM detent.job j WHERE j.state = 'running';

-- One line per change of anything. Order within an entity: (attempt, rank, n), never time alone.
-- The ordinary path is read out of the executions; error, crashed, timed out and unknown, and every end that comes to
-- rest in failed or quarantined, go by way of failed: one UPDATE, two lines.
CREATE OR REPLACE VIEW detent.transition AS
  SELECT j.tenant, 'job' AS entity, j.id AS job_id, j.id::text AS entity_id, NULL AS from_state, 'pending' AS to_state,
         'enqueue' AS trigger, j.created_at AS at, 'client' AS actor, NULL AS reason, NULL AS metadata, j.correlation_id,
         false AS forced, 0 AS attempt, 0 AS rank, 0::bigint AS n
    FROM detent.job j
  UNION ALL
  SELECT tenant, 'job', job_id, job_id::text, 'pending', 'running', 'claim', leased_at, worker, NULL, NULL, correlation_id, false, attempt, 10, 0
    FROM detent.attempt_to_read
  UNION ALL
  SELECT tenant, 'execution', job_id, job_id || '/' || attempt, NULL, 'leased', 'lease', leased_at, worker, NULL, NULL, correlation_id, false, attempt, 11, 0
    FROM detent.attempt_to_read
  UNION ALL
  SELECT tenant, 'execution', job_id, job_id || '/' || attempt, 'leased', 'in_progress', 'start', started_at, worker, NULL, NULL, correlation_id, false, attempt, 20, 0
    FROM detent.attempt_to_read WHERE started_at IS NOT NULL
  UNION ALL
  SELECT tenant, 'execution', job_id, job_id || '/' || attempt, 'in_progress', 'committed', 'commit', committed_at, worker, NULL, NULL, correlation_id, false, attempt, 30, 0
    FROM detent.attempt_to_read WHERE committed_at IS NOT NULL
  UNION ALL
  SELECT tenant, 'execution', job_id, job_id || '/' || attempt,
         CASE WHEN outcome = 'done' THEN 'committed' WHEN started_at IS NOT NULL THEN 'in_progress' ELSE 'leased' END,
         CASE WHEN outcome = 'done' THEN 'done' ELSE 'aborted' END,
         CASE WHEN outcome = 'done' THEN 'finish' ELSE 'abort' END, ended_at, worker, outcome, NULL, correlation_id, false, attempt, 40, 0
    FROM detent.attempt_to_read WHERE ended_at IS NOT NULL
  UNION ALL
  SELECT tenant, 'job', job_id, job_id::text, 'running',
         CASE WHEN outcome IN ('error', 'crashed', 'timed_out', 'unknown') OR next_state IN ('failed', 'quarantined')
              THEN CASE WHEN next_state = 'cancelled' THEN 'cancelled' ELSE 'failed' END ELSE next_state END,
         CASE WHEN outcome = 'done' THEN 'finish' WHEN next_state = 'cancelled' THEN 'abort'
              WHEN outcome IN ('error', 'crashed', 'timed_out', 'unknown') OR next_state IN ('failed', 'quarantined') THEN 'fail'
              ELSE 'give_back' END,
         ended_at, CASE WHEN outcome = 'expired' THEN 'reaper' ELSE worker END, outcome, NULL, correlation_id, false, attempt, 50, 0
    FROM detent.attempt_to_read WHERE ended_at IS NOT NULL
  UNION ALL
  SELECT tenant, 'job', job_id, job_id::text, 'failed', next_state,
         CASE WHEN next_state = 'quarantined' THEN 'give_up' ELSE 'back_off' END,
         ended_at, CASE WHEN outcome = 'expired' THEN 'reaper' ELSE worker END, outcome, NULL, correlation_id, false, attempt, 51, 0
    FROM detent.attempt_to_read
   WHERE ended_at IS NOT NULL
     AND (next_state = 'quarantined' OR (next_state = 'pending' AND outcome IN ('error', 'crashed', 'timed_out', 'unknown')))
  UNION ALL
  SELECT tenant, entity, job_id, entity_id, from_state, to_state, trigger, at, actor, reason, metadata, correlation_id, forced,
         attempt, CASE WHEN entity = 'job' AND from_state = 'running' THEN 45 ELSE 90 END, n
    FROM detent.transition_log
  UNION ALL
  SELECT tenant, entity, job_id, entity_id, from_state, to_state, trigger, at, actor, reason, metadata, correlation_id, forced, attempt, rank, n FROM detent.target_transition;

-- When attempts were claimed, began, committed and ended, with their job's task, queue and tenant.
CREATE OR REPLACE VIEW detent.attempt_times AS
  SELECT e.job_id, e.attempt, j.task, j.queue, j.tenant, e.outcome, e.worker, e.leased_at, e.started_at, e.committed_at,
         coalesce(e.done_at, e.aborted_at) AS ended_at,
         extract(epoch FROM e.started_at - e.leased_at)::double precision AS held_seconds,
         extract(epoch FROM coalesce(e.done_at, e.aborted_at) - e.started_at)::double precision AS run_seconds
    FROM detent.execution e JOIN detent.job j ON j.id = e.job_id;
