-- Runs and their lines, in the words of operations. What the engine knows of an end that nobody told it about is merged
-- into the metadata of the run: who cancelled it, why, which worker had it and since when.
CREATE OR REPLACE VIEW ops.runs AS
  SELECT 'run-' || v.job_id AS run_id, v.project_id, 'env-' || v.env_id AS env_id, v.env, v.git_sha, v.git_ref,
         v.state AS status, v.claimed_by, v.key AS idempotency_key,
         v.metadata::jsonb
           || CASE WHEN v.outcome = 'expired' AND v.state = 'failed' THEN jsonb_build_object(
                     'error', 'No sign of life for 10 minutes', 'reason', 'Stalled run (running for >10 minutes without events)',
                     'original_worker', v.claimed_by, 'claimed_at', v.started_at)
                   WHEN v.outcome = 'expired' AND v.begun_at IS NULL THEN jsonb_build_object(
                     'cancelled_by', coalesce(v.cancelled_by, 'system'),
                     'reason', coalesce(v.cancel_reason, 'Stale run (claimed for >5 minutes without events)'),
                     'original_worker', v.claimed_by, 'claimed_at', v.started_at)
                   WHEN v.state = 'cancelled' THEN jsonb_strip_nulls(jsonb_build_object(
                     'cancelled_by', v.cancelled_by, 'reason', v.cancel_reason))
                   ELSE '{}'::jsonb END
           || coalesce(v.finish_metadata, '{}')::jsonb AS metadata,
         v.queued_at, v.queued_at AS created_at, v.started_at, v.finished_at, v.updated_at
    FROM detent.ops_runs v;

CREATE OR REPLACE VIEW ops.run_events AS
  SELECT 'run-' || e.job_id || '/' || e.seq AS event_id, 'run-' || e.job_id AS run_id, e.level, e.message,
         coalesce(e.payload, '{}')::jsonb AS payload, e.at AS created_at, e.seq
    FROM detent.event e JOIN detent.ops_run r ON r.job_id = e.job_id;

CREATE OR REPLACE VIEW ops.environments AS
  SELECT 'env-' || e.id AS env_id, e.project_id, e.name, e.created_at FROM detent.ops_environment e;
