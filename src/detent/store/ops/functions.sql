-- The state of an ops run, from its job and execution.
CREATE OR REPLACE FUNCTION detent.ops_state(p_state text, p_started_at timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE p_state WHEN 'pending' THEN 'queued' WHEN 'succeeded' THEN 'success'
           WHEN 'running' THEN CASE WHEN p_started_at IS NULL THEN 'claimed' ELSE 'running' END ELSE p_state END
$$;

-- The id of an environment, which is created the first time that it is named.
CREATE OR REPLACE FUNCTION detent.ops_environment(p_project_id text, p_name text, t timestamptz) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  found_id bigint;
BEGIN
  LOOP
    SELECT e.id INTO found_id FROM detent.ops_environment e WHERE e.project_id = p_project_id AND e.name = p_name;
    IF FOUND THEN
      RETURN found_id;
    END IF;
    INSERT INTO detent.ops_environment (id, project_id, name, created_at)
      VALUES (detent.ids_reserve_v1(1), p_project_id, p_name, t)
      ON CONFLICT ON CONSTRAINT ops_environment_of_project DO NOTHING;
  END LOOP;
END $$;

-- ops_queue: queue an ops run.
-- takes:   a reserved id, a nonce, project, environment, sha, ref, metadata, a key, when it expires unless it is claimed
-- gives:   no row if it was created; else found (job_id is that run), id_conflict or key_conflict (job_id holds it)
-- locks:   new rows only. A caller that uses a key, or an environment, of an open transaction waits for its end
-- refuses: an id or a key that belongs to something else
CREATE OR REPLACE FUNCTION detent.ops_queue_v2(
  p_id bigint, p_nonce bigint, p_project_id text, p_env text, p_git_sha text, p_git_ref text, p_metadata text, p_key text,
  p_expires_at timestamptz
) RETURNS TABLE (answer text, job_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
  t       timestamptz := detent.clock();
  -- The names are sorted, as in a fingerprint.
  payload text := format('{"env":%s,"git_ref":%s,"git_sha":%s,"project_id":%s}', to_json(p_env),
                         coalesce(to_json(p_git_ref), 'null'), coalesce(to_json(p_git_sha), 'null'), to_json(p_project_id));
BEGIN
  RETURN QUERY
    SELECT q.answer, q.job_id FROM detent.job_enqueue_v1(
      ARRAY[p_id], ARRAY[p_nonce], ARRAY['ops.run'], ARRAY[payload], p_queues => ARRAY['ops'], p_attempts_max => ARRAY[1],
      p_dead_letters => ARRAY[false], p_metadatas => ARRAY[p_metadata],
      p_expires_ats => ARRAY[p_expires_at],
      -- Keys of ops runs are a namespace of their own: no other job may have a key that begins like this.
      p_keys => CASE WHEN p_key IS NULL THEN '{}'::text[] ELSE ARRAY['detent:ops:' || p_key] END,
      p_fingerprints => CASE WHEN p_key IS NULL THEN '{}'::text[] ELSE ARRAY[left(encode(
        sha256(convert_to('ops.run', 'UTF8') || '\x00'::bytea || convert_to(payload, 'UTF8')), 'hex'), 32)] END) q;
  IF NOT FOUND THEN
    INSERT INTO detent.ops_run (job_id, environment_id, git_sha, git_ref, key)
      VALUES (p_id, detent.ops_environment(p_project_id, p_env, t), p_git_sha, p_git_ref, p_key);
    PERFORM pg_notify('ops_runs', format('{"run_id":"run-%s","status":"queued"}', p_id));
  END IF;
END $$;

-- ops_claim: claim the ops run that was queued first.
-- takes:   the lease, the worker's name
-- gives:   the run, or no row
-- locks:   as job_claim; also expired leases of ops runs and their jobs, unless another transaction has locked them
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.ops_claim_v1(p_lease_id bigint, p_worker text)
RETURNS TABLE (job_id bigint, attempt integer, project_id text, env_id bigint, env text, git_sha text, git_ref text, metadata text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
  held record;
BEGIN
  -- If shell scripts are the only workers, no other process does it. After an outage they need no time to renew.
  PERFORM detent.lease_reap_v2(100, 'ops.run');
  PERFORM detent.job_expire_v1(100);
  SELECT c.* INTO held
    FROM detent.job_claim_each_v1(p_lease_id, p_worker, NULL, ARRAY['ops.run'], 1, 300, NULL, NULL, '{}') c
   WHERE c.job_id IS NOT NULL;
  IF held.job_id IS NULL THEN
    RETURN;
  END IF;
  PERFORM detent.event_append_v1(ARRAY[held.job_id], ARRAY[NULL::integer], ARRAY['info'], ARRAY['Run claimed by worker'],
                                 ARRAY[format('{"worker_id":%s}', to_json(p_worker))], ARRAY[NULL::text]);
  RETURN QUERY
    SELECT held.job_id, held.attempt, e.project_id, e.id, e.name, r.git_sha, r.git_ref, coalesce(held.metadata, '{}')
      FROM detent.ops_run r JOIN detent.ops_environment e ON e.id = r.environment_id
     WHERE r.job_id = held.job_id;
END $$;

-- ops_append: append an event to an ops run as its holder, and renew the lease.
-- takes:   the run's job, level, message, payload, a key; of which attempt and lease (null: the current holder's)
-- gives:   the event's number and whether it is new, or why the caller is not the holder; no row: no such run
-- locks:   the job, with its ready row first, then its lease
-- refuses: a caller that is not the holder
CREATE OR REPLACE FUNCTION detent.ops_append_v1(
  p_job_id bigint, p_level text, p_message text, p_payload text DEFAULT NULL, p_key text DEFAULT NULL,
  p_attempt integer DEFAULT NULL, p_lease_id bigint DEFAULT NULL
) RETURNS TABLE (seq integer, created boolean, attempt integer, instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
  t timestamptz := detent.clock();
  j detent.job := detent.job_lock(p_job_id);
BEGIN
  IF j.task IS DISTINCT FROM 'ops.run' THEN
    RETURN;
  END IF;
  attempt := coalesce(p_attempt, j.attempt);
  IF p_lease_id IS DISTINCT FROM j.lease_id AND p_lease_id IS NOT NULL THEN
    instead := 'another claim has it';
  ELSE
    SELECT a.seq, a.created, a.instead INTO seq, created, instead
      FROM detent.event_append_v1(ARRAY[p_job_id], ARRAY[attempt], ARRAY[p_level], ARRAY[p_message], ARRAY[p_payload],
                                  ARRAY[p_key]) a;
  END IF;
  IF instead IS NULL THEN
    UPDATE detent.lease SET expires_at = greatest(expires_at, t + interval '600 seconds') WHERE id = j.lease_id;
  END IF;
  RETURN NEXT;
END $$;

-- ops_renew: renew the lease of an ops run as its holder.
-- takes:   the run's job; of which attempt and lease (null: the current holder's)
-- gives:   the state it is in, or why the caller is not the holder; no row: no such run
-- locks:   the job, with its ready row first, then its lease
-- refuses: a caller that is not the holder
CREATE OR REPLACE FUNCTION detent.ops_renew_v1(
  p_job_id bigint, p_attempt integer DEFAULT NULL, p_lease_id bigint DEFAULT NULL
) RETURNS TABLE (state text, attempt integer, instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
  t timestamptz := detent.clock();
  j detent.job := detent.job_lock(p_job_id);
BEGIN
  IF j.task IS DISTINCT FROM 'ops.run' THEN
    RETURN;
  END IF;
  state := detent.ops_state(j.state, j.started_at);
  attempt := coalesce(p_attempt, j.attempt);
  IF p_lease_id IS NOT NULL AND (p_lease_id IS DISTINCT FROM j.lease_id OR attempt <> j.attempt) THEN
    instead := 'another claim has it';
  ELSE
    instead := detent.holder_lost(j, attempt, t);
  END IF;
  IF instead IS NULL THEN
    UPDATE detent.lease SET expires_at = greatest(expires_at, t + interval '600 seconds') WHERE id = j.lease_id;
  END IF;
  RETURN NEXT;
END $$;

-- ops_finish: end an ops run.
-- takes:   the run's job, as what, metadata of the end; who, why; the error of a failure; of which attempt and lease (null:
--          the current holder's, or any caller that cancels)
-- gives:   the state it was found in, the state it is in now, whether it was moved, or whether that is refused; or why the
--          caller is not the holder. No row: no such run
-- locks:   the job, with its ready or waiting row first
-- refuses: what the lifecycle ops_run does not declare; a caller that is not the holder
CREATE OR REPLACE FUNCTION detent.ops_finish_v1(
  p_job_id bigint, p_state text, p_metadata text, p_actor text, p_reason text DEFAULT NULL, p_error text DEFAULT NULL,
  p_attempt integer DEFAULT NULL, p_lease_id bigint DEFAULT NULL
) RETURNS TABLE (was text, state text, moved boolean, refused boolean, attempt integer, instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
  t      timestamptz := detent.clock();
  j      detent.job := detent.job_lock(p_job_id);
  worker text;
BEGIN
  IF j.task IS DISTINCT FROM 'ops.run' THEN
    RETURN;
  END IF;
  was := detent.ops_state(j.state, j.started_at);
  state := was;
  moved := false;
  refused := false;
  attempt := coalesce(p_attempt, j.attempt);
  IF p_lease_id IS NOT NULL AND (p_lease_id IS DISTINCT FROM j.lease_id OR attempt <> j.attempt) THEN
    instead := 'another claim has it';
  ELSIF was = p_state OR p_state = 'failed' AND EXISTS (
      SELECT 1 FROM detent.execution e WHERE e.job_id = p_job_id AND e.attempt = j.attempt AND e.outcome = 'error') THEN
    NULL;  -- the same end again
  ELSIF was = 'queued' AND p_state = 'cancelled' THEN
    PERFORM detent.job_put_away(j, 'cancelled', 'cancel', p_actor, p_reason, t);
    moved := true;
  ELSIF was = 'running' OR was = 'claimed' AND p_state = 'cancelled' THEN
    IF p_lease_id IS NOT NULL OR p_state <> 'cancelled' THEN
      instead := detent.holder_lost(j, attempt, t);
    END IF;
    moved := instead IS NULL;
  ELSE
    refused := true;
  END IF;
  IF moved AND j.state = 'running' THEN
    SELECT l.worker INTO worker FROM detent.lease l WHERE l.id = j.lease_id;
    CASE p_state
    WHEN 'success' THEN
      PERFORM detent.job_finish_v2(ARRAY[p_job_id], ARRAY[j.attempt], NULL, worker, NULL);
    WHEN 'cancelled' THEN
      PERFORM detent.job_cancel_v1(ARRAY[p_job_id], p_actor, p_reason);
    ELSE
      PERFORM detent.attempt_abort(j, worker, 'error', p_error, 0, true, t);
    END CASE;
  END IF;
  IF moved THEN
    UPDATE detent.ops_run SET finish_metadata = p_metadata WHERE job_id = p_job_id;
    SELECT detent.ops_state(k.state, k.started_at) INTO state FROM detent.job k WHERE k.id = p_job_id;
  END IF;
  RETURN NEXT;
END $$;

-- ops_cancel: cancel an ops run, also while a worker holds it.
-- takes:   the run's job, who, why
-- gives:   as ops_finish
-- locks:   the job, with its ready or waiting row first
-- refuses: a run that has ended as something else
CREATE OR REPLACE FUNCTION detent.ops_cancel_v1(p_job_id bigint, p_actor text, p_reason text DEFAULT NULL)
RETURNS TABLE (was text, state text, moved boolean, refused boolean, attempt integer, instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
BEGIN
  RETURN QUERY SELECT f.* FROM detent.ops_finish_v1(p_job_id, 'cancelled', '{}', p_actor, p_reason) f;
END $$;

-- ops_get: ops runs by id.
-- takes:   the ids of their jobs
-- gives:   those that exist
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.ops_get_v1(p_ids bigint[]) RETURNS SETOF detent.ops_runs
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT v.* FROM detent.ops_runs v WHERE v.job_id = ANY (p_ids);
END $$;

-- ops_list: ops runs, newest first.
-- takes:   project, environment and state (null is any), below which id, how many
-- gives:   runs
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.ops_list_v1(
  p_project_id text DEFAULT NULL, p_env text DEFAULT NULL, p_state text DEFAULT NULL, p_before_id bigint DEFAULT NULL,
  p_limit integer DEFAULT 100
) RETURNS SETOF detent.ops_runs
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT v.* FROM detent.ops_runs v
     WHERE (p_project_id IS NULL OR v.project_id = p_project_id) AND (p_env IS NULL OR v.env = p_env)
       AND (p_state IS NULL OR v.state = p_state) AND (p_before_id IS NULL OR v.job_id < p_before_id)
     ORDER BY v.job_id DESC LIMIT p_limit;
END $$;

-- ops_environments: the environments of runs.
-- takes:   the project (null is any)
-- gives:   environments, by project and name
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.ops_environments_v1(p_project_id text DEFAULT NULL) RETURNS SETOF detent.ops_environment
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT e.* FROM detent.ops_environment e WHERE p_project_id IS NULL OR e.project_id = p_project_id
     ORDER BY e.project_id COLLATE "C", e.name COLLATE "C";
END $$;
