-- Queue a run. The same key answers the same run; with another project, environment, sha or ref it is refused (DT006).
-- One that nobody has claimed by p_expires_at is cancelled.
DROP FUNCTION IF EXISTS ops.queue_run(text, text, text, text, jsonb, text);
CREATE OR REPLACE FUNCTION ops.queue_run(
  p_project_id text, p_env text, p_git_sha text, p_git_ref text, p_metadata jsonb DEFAULT '{}'::jsonb,
  p_idempotency_key text DEFAULT NULL, p_expires_at timestamptz DEFAULT NULL
) RETURNS TABLE (run_id text, status text, queued_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, ops, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
  id    bigint;
  nonce bigint := floor(random() * 9e15)::bigint;
  other record;
BEGIN
  PERFORM ops.check_text('p_project_id', p_project_id, 200);
  PERFORM ops.check_text('p_env', p_env, 200);
  PERFORM ops.check_text('p_git_sha', p_git_sha, 200, true);
  PERFORM ops.check_text('p_git_ref', p_git_ref, 1000, true);
  IF p_idempotency_key IS NOT NULL THEN
    PERFORM ops.check_text('p_idempotency_key', p_idempotency_key, 512);
  END IF;
  id := detent.ids_reserve_v1(1);
  SELECT q.answer, q.job_id INTO other
    FROM detent.ops_queue_v2(id, nonce, p_project_id, p_env, p_git_sha, p_git_ref,
                             ops.check_object('p_metadata', p_metadata, 16384), p_idempotency_key, p_expires_at) q;
  IF other.answer = 'key_conflict' THEN
    PERFORM ops.refuse('DT006', format(
      'key %L belongs to run-%s, which is another project, environment or revision; use a key of its own for other work',
      p_idempotency_key, other.job_id));
  END IF;
  RETURN QUERY
    SELECT 'run-' || v.job_id, v.state, v.queued_at FROM detent.ops_runs v WHERE v.job_id = coalesce(other.job_id, id);
  IF NOT FOUND THEN
    -- Its key outlived it.
    PERFORM ops.refuse('DT006', format('key %L belongs to run-%s, which has been deleted; use another key',
                                       p_idempotency_key, other.job_id));
  END IF;
END $$;
