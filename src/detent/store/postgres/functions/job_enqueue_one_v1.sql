-- job_enqueue_one: accept one job without a key, as most are sent, at the least cost.
-- takes:   the columns of the job, and p_notify as job_enqueue does
-- gives:   whether it was created. If not, its lane is new or its id is there already: job_enqueue judges that
-- locks:   new rows only
-- refuses: nothing
-- differs: SQLite needs no shorter way
CREATE OR REPLACE FUNCTION detent.job_enqueue_one_v1(
  p_id bigint, p_nonce bigint, p_task text, p_payload text,
  p_queue text DEFAULT 'default', p_tenant text DEFAULT '', p_priority smallint DEFAULT 0::smallint,
  p_attempts_max integer DEFAULT 4, p_dead_letter boolean DEFAULT true, p_idempotent boolean DEFAULT true,
  p_due_at timestamptz DEFAULT NULL, p_expires_at timestamptz DEFAULT NULL, p_metadata text DEFAULT NULL,
  p_correlation_id text DEFAULT NULL, p_traceparent text DEFAULT NULL, p_run_id bigint DEFAULT NULL,
  p_limit_key text DEFAULT NULL, p_notify boolean DEFAULT true
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
  t    timestamptz := detent.clock();
  lane bigint;
BEGIN
  SELECT l.id INTO lane FROM detent.lane l
   WHERE l.queue = p_queue AND l.task = p_task AND l.tenant = p_tenant AND l.priority = p_priority
     AND l.limit_key = coalesce(p_limit_key, '');
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO detent.job (id, tenant, task, queue, priority, due_at, expires_at, payload, metadata, correlation_id,
      traceparent, run_id, nonce, created_at, attempts_max, dead_letter, idempotent, limit_key)
    VALUES (p_id, p_tenant, p_task, p_queue, p_priority, greatest(p_due_at, t), p_expires_at, p_payload, p_metadata,
            p_correlation_id, p_traceparent, p_run_id, p_nonce, t, p_attempts_max, p_dead_letter, p_idempotent, p_limit_key)
    ON CONFLICT (id) DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO detent.job_span (created_at, block, first_id, last_id) VALUES (t, p_id >> 10, p_id, p_id);
  IF p_due_at > t THEN
    INSERT INTO detent.waiting (job_id, lane_id, due_at, expires_at, priority)
      VALUES (p_id, lane, p_due_at, p_expires_at, p_priority);
  ELSE
    INSERT INTO detent.ready (lane_id, ready_at, job_id, expires_at) VALUES (lane, t, p_id, p_expires_at);
  END IF;
  -- A look first: to call it costs more than to see that nobody waits.
  IF p_notify OR EXISTS (SELECT 1 FROM detent.service s WHERE s.name = 'wake' AND s.expires_at > t) THEN
    PERFORM detent.wake_waiters(p_notify);
  END IF;
  RETURN true;
END $$;
