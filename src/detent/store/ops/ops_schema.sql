-- The schema `ops`: ops runs as functions and views, for programs in any language.
CREATE SCHEMA IF NOT EXISTS ops;
COMMENT ON SCHEMA ops IS 'Detent: ops runs, over the jobs in schema detent.';

-- Raise an error; never returns.
CREATE OR REPLACE FUNCTION ops.refuse(p_code text, p_message text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = p_code, MESSAGE = p_message;
END $$;

-- Refuse a text that is empty or too long.
CREATE OR REPLACE FUNCTION ops.check_text(p_field text, p_text text, p_bytes_max integer, p_may_be_empty boolean DEFAULT false)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, ops, pg_temp SET jit = off AS $$
BEGIN
  IF octet_length(p_text) > p_bytes_max THEN
    PERFORM ops.refuse('DT020', format('%s: found %s bytes; allowed: at most %s', p_field, octet_length(p_text), p_bytes_max));
  ELSIF NOT p_may_be_empty AND coalesce(p_text, '') = '' THEN
    PERFORM ops.refuse('DT020', format('%s: found nothing; allowed: some text', p_field));
  END IF;
END $$;

-- Return a JSON object as it is stored, or refuse one that is too long or no object.
CREATE OR REPLACE FUNCTION ops.check_object(p_field text, p_value jsonb, p_bytes_max integer) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, ops, pg_temp SET jit = off AS $$
BEGIN
  IF p_value IS NULL THEN
    RETURN '{}';
  END IF;
  IF jsonb_typeof(p_value) <> 'object' THEN
    PERFORM ops.refuse('DT021', format('%s: found a JSON value of type %s; allowed: an object', p_field, jsonb_typeof(p_value)));
  END IF;
  PERFORM ops.check_text(p_field, p_value::text, p_bytes_max);
  RETURN p_value::text;
END $$;

-- The job of a run by the name of the run, such as run-17. Null if it is no such name.
CREATE OR REPLACE FUNCTION ops.run_number(p_run_id text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN CASE WHEN p_run_id ~ '^run-[0-9]{1,18}$' THEN substr(p_run_id, 5)::bigint END;
END $$;

-- The attempt and the lease that a token names; null for no token. Any other text is refused (DT020).
CREATE OR REPLACE FUNCTION ops.token_parts(p_token text, OUT attempt integer, OUT lease_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, ops, pg_temp SET jit = off AS $$
BEGIN
  IF p_token IS NOT NULL THEN
    IF p_token !~ '^[0-9]{1,9}\.[0-9]{1,18}$' THEN
      PERFORM ops.refuse('DT020', format('p_token: found %L; allowed: the token of a claim, or none', left(p_token, 80)));
    END IF;
    attempt := split_part(p_token, '.', 1)::integer;
    lease_id := split_part(p_token, '.', 2)::bigint;
  END IF;
END $$;

-- Queue a run. The same key returns the same run; with another project, environment, sha or ref it is refused (DT006).
-- A run that is not claimed by p_expires_at is cancelled.
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
    -- The run was deleted, and its key is kept.
    PERFORM ops.refuse('DT006', format('key %L belongs to run-%s, which has been deleted; use another key',
                                       p_idempotency_key, other.job_id));
  END IF;
END $$;

-- Claim the run that was queued first; no row if none is queued. Pass the token to the other functions: it names this claim.
CREATE OR REPLACE FUNCTION ops.claim_next_run(p_worker_id text)
RETURNS TABLE (run_id text, project_id text, env_id text, git_sha text, git_ref text, metadata jsonb, token text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, ops, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
  lease bigint;
BEGIN
  PERFORM ops.check_text('p_worker_id', p_worker_id, 200);
  lease := detent.ids_reserve_v1(1);
  RETURN QUERY
    SELECT 'run-' || c.job_id, c.project_id, 'env-' || c.env_id, c.git_sha, c.git_ref, c.metadata::jsonb,
           c.attempt || '.' || lease
      FROM detent.ops_claim_v1(lease, p_worker_id) c;
END $$;

-- Append an event to a run as its holder. The first one makes a claimed run running. The same event again within ten
-- seconds is a no-op. Refused if no worker holds the run, or the token names another claim (DT004).
CREATE OR REPLACE FUNCTION ops.append_event(
  p_run_id text, p_level text, p_message text, p_payload jsonb DEFAULT '{}'::jsonb, p_token text DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, ops, pg_temp SET jit = off AS $$
DECLARE
  id   bigint := ops.run_number(p_run_id);
  held record;
  line record;
BEGIN
  PERFORM ops.check_text('p_level', p_level, 200);
  PERFORM ops.check_text('p_message', p_message, 65536, true);
  SELECT * INTO held FROM ops.token_parts(p_token);
  SELECT * INTO line FROM detent.ops_append_v1(id, p_level, coalesce(p_message, ''),
    ops.check_object('p_payload', p_payload, 65536), NULL, held.attempt, held.lease_id);
  IF NOT FOUND THEN
    PERFORM ops.refuse('DT008', format('there is no ops_run %s in this database (it may have been pruned)', left(p_run_id, 80)));
  ELSIF line.instead IS NOT NULL THEN
    PERFORM ops.refuse('DT004', format(
      '%s is not held by this caller: %s; only the holder of an unexpired lease may write', p_run_id, line.instead));
  END IF;
  RETURN p_run_id || '/' || line.seq;
END $$;

-- Renew the lease of a run as its holder, without an event: for a build that is silent for long. Returns the status.
-- Refused if no worker holds the run, or the token names another claim (DT004).
CREATE OR REPLACE FUNCTION ops.renew_run(p_run_id text, p_token text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, ops, pg_temp SET jit = off AS $$
DECLARE
  id    bigint := ops.run_number(p_run_id);
  held  record;
  found_run record;
BEGIN
  SELECT * INTO held FROM ops.token_parts(p_token);
  SELECT * INTO found_run FROM detent.ops_renew_v1(id, held.attempt, held.lease_id);
  IF NOT FOUND THEN
    PERFORM ops.refuse('DT008', format('there is no ops_run %s in this database (it may have been pruned)', left(p_run_id, 80)));
  ELSIF found_run.instead IS NOT NULL THEN
    PERFORM ops.refuse('DT004', format(
      '%s is not held by this caller: %s; only the holder of an unexpired lease may write', p_run_id, found_run.instead));
  END IF;
  RETURN found_run.state;
END $$;

-- End a run as success, failed or cancelled; its metadata is merged with what it was queued with. The same end again
-- changes nothing. Returns the status. Refused if the lifecycle has no such move (DT002), or the caller is not the holder
-- (DT004); any caller without a token may cancel.
CREATE OR REPLACE FUNCTION ops.finish_run(
  p_run_id text, p_status text, p_metadata jsonb DEFAULT '{}'::jsonb, p_token text DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, ops, pg_temp SET jit = off AS $$
DECLARE
  id       bigint := ops.run_number(p_run_id);
  metadata text := ops.check_object('p_metadata', p_metadata, 16384);
  held     record;
  ended    record;
BEGIN
  IF p_status IS NULL OR p_status NOT IN ('success', 'failed', 'cancelled') THEN
    PERFORM ops.refuse('DT020', format('p_status: found %L; allowed: success, failed, cancelled', left(p_status, 80)));
  END IF;
  SELECT * INTO held FROM ops.token_parts(p_token);
  SELECT * INTO ended FROM detent.ops_finish_v1(
    id, p_status, metadata, left(coalesce(nullif(metadata::jsonb ->> 'cancelled_by', ''), 'client'), 200),
    left(metadata::jsonb ->> 'reason', 2000), left(metadata::jsonb ->> 'error', 65536), held.attempt, held.lease_id);
  IF NOT FOUND THEN
    PERFORM ops.refuse('DT008', format('there is no ops_run %s in this database (it may have been pruned)', left(p_run_id, 80)));
  ELSIF ended.instead IS NOT NULL THEN
    PERFORM ops.refuse('DT004', format(
      '%s is not held by this caller: %s; only the holder of an unexpired lease may write', p_run_id, ended.instead));
  ELSIF ended.refused THEN
    PERFORM ops.refuse('DT002', format('ops_run %s cannot go from %s to %s; allowed from %s: %s', p_run_id, ended.was,
      p_status, ended.was, CASE ended.was WHEN 'queued' THEN 'claimed, cancelled' WHEN 'claimed' THEN 'running, cancelled'
        WHEN 'running' THEN 'success, failed, cancelled' ELSE 'nothing, it is final' END));
  END IF;
  RETURN ended.state;
END $$;

-- Cancel a run, also while a worker holds it; the holder's next event is refused. Returns the status.
CREATE OR REPLACE FUNCTION ops.cancel_run(p_run_id text, p_cancelled_by text, p_reason text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, ops, pg_temp SET jit = off AS $$
BEGIN
  PERFORM ops.check_text('p_cancelled_by', p_cancelled_by, 200);
  PERFORM ops.check_text('p_reason', p_reason, 2000, true);
  RETURN ops.finish_run(p_run_id, 'cancelled', jsonb_strip_nulls(
    jsonb_build_object('cancelled_by', p_cancelled_by, 'reason', p_reason)));
END $$;

-- Runs and their events. If a run was cancelled or its lease expired, its metadata also says who cancelled it, why, which
-- worker held it and since when.
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
