-- job_promote: move waiting jobs that have come due to ready.
-- takes:   how many at most
-- gives:   how many were moved
-- locks:   exactly the waiting rows it moves; rows that others hold are skipped
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_promote_v1(p_limit integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t     timestamptz := detent.clock();
  moved integer;
BEGIN
  WITH due AS (
    DELETE FROM detent.waiting WHERE ctid = ANY (ARRAY(
      SELECT w.ctid FROM detent.waiting w WHERE w.limit_key IS NULL AND w.due_at <= t
       ORDER BY w.due_at, w.job_id LIMIT p_limit FOR UPDATE SKIP LOCKED))
    RETURNING lane_id, due_at, job_id, holds_key, expires_at
  )
  INSERT INTO detent.ready (lane_id, ready_at, job_id, holds_key, expires_at)
    SELECT d.lane_id, d.due_at, d.job_id, d.holds_key, d.expires_at FROM due d;
  GET DIAGNOSTICS moved = ROW_COUNT;
  IF moved > 0 THEN
    PERFORM detent.wake_waiters(false);
  END IF;
  RETURN moved;
END $$;

-- job_promote_each: move waiting jobs that have come due to ready, row by row.
-- takes:   how many at most; the jobs to leave out
-- gives:   the jobs that were moved; those that could not be, and why
-- locks:   the waiting rows it reads; rows that others hold are skipped
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_promote_each_v1(p_limit integer, p_skip bigint[])
RETURNS TABLE (done bigint[], bad bigint[], causes text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := detent.clock();
  w detent.waiting;
BEGIN
  done := '{}';
  bad := '{}';
  causes := '{}';
  FOR w IN
    SELECT x.* FROM detent.waiting x
     WHERE x.limit_key IS NULL AND x.due_at <= t AND x.job_id <> ALL (p_skip)
     ORDER BY x.due_at, x.job_id LIMIT p_limit FOR UPDATE SKIP LOCKED
  LOOP
    BEGIN
      DELETE FROM detent.waiting x WHERE x.job_id = w.job_id;
      INSERT INTO detent.ready (lane_id, ready_at, job_id, holds_key, expires_at)
        VALUES (w.lane_id, w.due_at, w.job_id, w.holds_key, w.expires_at);
      done := done || w.job_id;
    EXCEPTION WHEN OTHERS THEN
      IF NOT detent.is_of_one_row(SQLSTATE) THEN
        RAISE;
      END IF;
      bad := bad || w.job_id;
      causes := causes || SQLERRM;
    END;
  END LOOP;
  IF cardinality(done) > 0 THEN
    PERFORM detent.wake_waiters(false);
  END IF;
  RETURN NEXT;
END $$;

-- job_expire: cancel pending jobs whose expiry has passed.
-- takes:   how many at most
-- gives:   their ids, the longest expired first
-- time:    the clock is read before the rows. A job that expires in between is left for the next call, and job_now never gives
--          a time before those on the job's row, so the record is in order
-- locks:   exactly the ready and waiting rows it takes, then their jobs; rows that others hold are skipped
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_expire_v1(p_limit integer) RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t     timestamptz := detent.clock();
  ids   bigint[];
  keyed bigint[];
BEGIN
  WITH late AS MATERIALIZED (
    SELECT c.is_ready, c.place, c.job_id, c.expires_at FROM (
      (SELECT true AS is_ready, r.ctid AS place, r.job_id, r.expires_at FROM detent.ready r
        WHERE r.expires_at <= t ORDER BY r.expires_at, r.job_id LIMIT p_limit)
      UNION ALL
      (SELECT false, w.ctid, w.job_id, w.expires_at FROM detent.waiting w
        WHERE w.expires_at <= t ORDER BY w.expires_at, w.job_id LIMIT p_limit)) c
     ORDER BY c.expires_at, c.job_id LIMIT p_limit
  ), from_ready AS (
    DELETE FROM detent.ready WHERE ctid = ANY (ARRAY(
      SELECT r.ctid FROM detent.ready r WHERE r.ctid = ANY (ARRAY(SELECT l.place FROM late l WHERE l.is_ready))
         FOR UPDATE SKIP LOCKED))
    RETURNING job_id, holds_key, expires_at
  ), from_waiting AS (
    DELETE FROM detent.waiting WHERE ctid = ANY (ARRAY(
      SELECT w.ctid FROM detent.waiting w WHERE w.ctid = ANY (ARRAY(SELECT l.place FROM late l WHERE NOT l.is_ready))
         FOR UPDATE SKIP LOCKED))
    RETURNING job_id, holds_key, expires_at
  ), gone AS (
    SELECT * FROM from_ready UNION ALL SELECT * FROM from_waiting
  )
  SELECT array_agg(g.job_id ORDER BY g.expires_at, g.job_id), array_agg(g.job_id) FILTER (WHERE g.holds_key)
    INTO ids, keyed FROM gone g;
  IF ids IS NULL THEN
    RETURN;
  END IF;
  IF keyed IS NOT NULL THEN
    DELETE FROM detent.job_key WHERE ctid = ANY (ARRAY(
      SELECT k.ctid FROM detent.job_key k WHERE k.job_id = ANY (keyed) AND k.until_claim FOR UPDATE SKIP LOCKED));
  END IF;
  INSERT INTO detent.transition_log
      (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor, correlation_id, at)
    SELECT j.tenant, 'job', j.id::text, j.id, j.attempt, j.state, 'cancelled', 'expire', 'system', j.correlation_id,
           detent.job_now(j, t)
      FROM detent.job j WHERE j.id = ANY (ids) ORDER BY array_position(ids, j.id);
  PERFORM detent.transition_count(j, 'cancelled', detent.job_now(j, t)) FROM detent.job j WHERE j.id = ANY (ids);
  UPDATE detent.job j SET state = 'cancelled', finished_at = detent.job_now(j, t) WHERE j.id = ANY (ids);
  RETURN QUERY SELECT unnest(ids);
END $$;

-- job_expire_each: cancel pending jobs whose expiry has passed, one by one.
-- takes:   how many at most; the jobs to leave out
-- gives:   the jobs that were cancelled; those that could not be, and why
-- locks:   the ready or waiting row of each, then its job; rows that others hold are skipped
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_expire_each_v1(p_limit integer, p_skip bigint[])
RETURNS TABLE (done bigint[], bad bigint[], causes text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t    timestamptz := detent.clock();
  late record;
  j    detent.job;
BEGIN
  done := '{}';
  bad := '{}';
  causes := '{}';
  FOR late IN
    SELECT c.is_ready, c.place, c.job_id FROM (
      (SELECT true AS is_ready, r.ctid AS place, r.job_id, r.expires_at FROM detent.ready r
        WHERE r.expires_at <= t AND r.job_id <> ALL (p_skip) ORDER BY r.expires_at, r.job_id LIMIT p_limit)
      UNION ALL
      (SELECT false, w.ctid, w.job_id, w.expires_at FROM detent.waiting w
        WHERE w.expires_at <= t AND w.job_id <> ALL (p_skip) ORDER BY w.expires_at, w.job_id LIMIT p_limit)) c
     ORDER BY c.expires_at, c.job_id LIMIT p_limit
  LOOP
    BEGIN
      IF late.is_ready THEN
        DELETE FROM detent.ready WHERE ctid = ANY (ARRAY(
          SELECT r.ctid FROM detent.ready r WHERE r.ctid = late.place AND r.job_id = late.job_id FOR UPDATE SKIP LOCKED));
      ELSE
        DELETE FROM detent.waiting WHERE ctid = ANY (ARRAY(
          SELECT w.ctid FROM detent.waiting w WHERE w.ctid = late.place AND w.job_id = late.job_id FOR UPDATE SKIP LOCKED));
      END IF;
      CONTINUE WHEN NOT FOUND;
      SELECT k.* INTO j FROM detent.job k WHERE k.id = late.job_id FOR UPDATE;
      IF j.id IS NULL THEN
        RAISE EXCEPTION 'the job does not exist' USING ERRCODE = 'DT041';
      ELSIF j.state <> 'pending' THEN
        RAISE EXCEPTION 'the job is %, not pending', j.state USING ERRCODE = 'DT041';
      END IF;
      DELETE FROM detent.job_key WHERE ctid = ANY (ARRAY(
        SELECT k.ctid FROM detent.job_key k WHERE k.job_id = late.job_id AND k.until_claim FOR UPDATE SKIP LOCKED));
      INSERT INTO detent.transition_log
          (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor, correlation_id, at)
        VALUES (j.tenant, 'job', j.id::text, j.id, j.attempt, j.state, 'cancelled', 'expire', 'system', j.correlation_id,
                detent.job_now(j, t));
      PERFORM detent.transition_count(j, 'cancelled', detent.job_now(j, t));
      UPDATE detent.job k SET state = 'cancelled', finished_at = detent.job_now(j, t) WHERE k.id = j.id;
      done := done || j.id;
    EXCEPTION WHEN OTHERS THEN
      IF NOT detent.is_of_one_row(SQLSTATE) THEN
        RAISE;
      END IF;
      bad := bad || late.job_id;
      causes := causes || SQLERRM;
    END;
  END LOOP;
  RETURN NEXT;
END $$;

-- Whether an error of this code can be the fault of the row that was handled. Deadlocks, serialization failures, lock
-- time-outs, a missing table or function, a server without room or one that takes no writes would strike any other row.
CREATE OR REPLACE FUNCTION detent.is_of_one_row(p_code text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
  SELECT left(p_code, 2) NOT IN ('08', '25', '28', '40', '53', '54', '55', '57', '58')
     AND p_code NOT IN ('42P01', '42883', '3F000')
$$;

-- job_silent: jobs in flight that nothing is heard of.
-- takes:   the queue (null is any), seconds until not begun is stale and until silent is stalled (null is never), how many;
--          the times of a task take precedence; under which leases (null is any)
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
     CROSS JOIN LATERAL (SELECT k.id, k.attempt, k.queue, k.task, k.leased_at, k.started_at, k.committed_at, k.cancel_requested_at
                           FROM detent.job k WHERE k.id = held.job_id AND k.lease_id = l.id AND k.state = 'running' OFFSET 0) j
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

-- task_times_put: store the times that tasks declare.
-- takes:   tasks, and as arrays beside them the seconds of each (null is as everywhere)
-- gives:   nothing
-- locks:   their rows
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.task_times_put_v1(
  p_tasks text[], p_stale_after double precision[], p_stalled_after double precision[], p_result_ttl double precision[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
BEGIN
  INSERT INTO detent.task_times AS s (task, stale_after, stalled_after, result_ttl)
    SELECT u.task, u.stale_after, u.stalled_after, u.result_ttl
      FROM unnest(p_tasks, p_stale_after, p_stalled_after, p_result_ttl) AS u (task, stale_after, stalled_after, result_ttl)
     WHERE num_nonnulls(u.stale_after, u.stalled_after, u.result_ttl) > 0 ORDER BY u.task
    ON CONFLICT (task) DO UPDATE
      SET stale_after = excluded.stale_after, stalled_after = excluded.stalled_after, result_ttl = excluded.result_ttl
      WHERE (s.stale_after, s.stalled_after, s.result_ttl)
            IS DISTINCT FROM (excluded.stale_after, excluded.stalled_after, excluded.result_ttl);
  DELETE FROM detent.task_times s
   USING unnest(p_tasks, p_stale_after, p_stalled_after, p_result_ttl) AS u (task, stale_after, stalled_after, result_ttl)
   WHERE s.task = u.task AND num_nonnulls(u.stale_after, u.stalled_after, u.result_ttl) = 0;
END $$;

-- task_times_list: the times that tasks declare.
-- takes:   nothing
-- gives:   the tasks that declare times, by name
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.task_times_list_v1() RETURNS SETOF detent.task_times
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT s.* FROM detent.task_times s ORDER BY s.task COLLATE "C";
END $$;

-- task_secrets_put: record the secret fields of tasks.
-- takes:   the tasks; each field as a task and a path; whether those on record are replaced
-- gives:   nothing
-- locks:   their rows
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.task_secrets_put_v1(
  p_all text[], p_tasks text[], p_paths text[], p_replace boolean
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
BEGIN
  IF p_replace THEN
    DELETE FROM detent.task_secret s
     WHERE s.task = ANY (p_all)
       AND NOT EXISTS (SELECT 1 FROM unnest(p_tasks, p_paths) AS u (task, path) WHERE u.task = s.task AND u.path = s.path);
  END IF;
  INSERT INTO detent.task_secret (task, path)
    SELECT u.task, u.path FROM unnest(p_tasks, p_paths) AS u (task, path) ORDER BY u.task, u.path
    ON CONFLICT DO NOTHING;
END $$;

-- task_secrets_list: the secret fields of tasks.
-- takes:   nothing
-- gives:   the tasks that have some, by name, with the paths
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.task_secrets_list_v1() RETURNS TABLE (task text, paths text[])
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT s.task, array_agg(s.path ORDER BY s.path COLLATE "C") FROM detent.task_secret s
     GROUP BY s.task ORDER BY s.task COLLATE "C";
END $$;

-- recovery_set: whether silent jobs of a queue are stopped without a person's approval.
-- takes:   the queue, after how many seconds (null is never; both null: only with approval), who, why
-- gives:   whether that changed anything
-- locks:   the queue's row among the recoveries
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.recovery_set_v1(
  p_queue text, p_stale_after double precision, p_stalled_after double precision, p_actor text, p_reason text DEFAULT NULL
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t         timestamptz := detent.clock();
  was       detent.recovery;
  automatic boolean := p_stale_after IS NOT NULL OR p_stalled_after IS NOT NULL;
BEGIN
  SELECT r.* INTO was FROM detent.recovery r WHERE r.queue = p_queue FOR UPDATE;
  IF (was.stale_after, was.stalled_after) IS NOT DISTINCT FROM (p_stale_after, p_stalled_after) THEN
    RETURN false;
  END IF;
  INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    VALUES ('recovery', p_queue, CASE WHEN was.queue IS NULL THEN 'approval' ELSE 'automatic' END,
            CASE WHEN automatic THEN 'automatic' ELSE 'approval' END, 'set', p_actor, p_reason, t);
  IF automatic THEN
    INSERT INTO detent.recovery (queue, stale_after, stalled_after, changed_by, reason, changed_at)
      VALUES (p_queue, p_stale_after, p_stalled_after, p_actor, p_reason, t)
      ON CONFLICT (queue) DO UPDATE
        SET stale_after = excluded.stale_after, stalled_after = excluded.stalled_after, changed_by = excluded.changed_by,
            reason = excluded.reason, changed_at = excluded.changed_at;
  ELSE
    DELETE FROM detent.recovery r WHERE r.queue = p_queue;
  END IF;
  RETURN true;
END $$;

-- recovery_list: the queues whose silent jobs are stopped without a person's approval.
-- takes:   nothing
-- gives:   them, by name
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.recovery_list_v1() RETURNS SETOF detent.recovery
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT r.* FROM detent.recovery r ORDER BY r.queue COLLATE "C";
END $$;

-- job_left: whether there is anything left to do for a worker that drains.
-- takes:   its tasks and queues (null is every queue); the versions of workflows that it can continue, in parallel arrays (null
--          is any); the job after which to look among those that wait, and at how many
-- gives:   whether a job of these is ready, running (then the place is 0), or due later. Parked workflows, and nodes that wait for
--          others, are not waited for. The place is where to look next: before the job that was found, or after the last that
--          was looked at; null at the end
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_left_v1(
  p_tasks text[], p_queues text[], p_version_tasks text[], p_versions integer[], p_after bigint DEFAULT 0,
  p_limit integer DEFAULT 10000, OUT is_left boolean, OUT place bigint
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  groups bigint[] := ARRAY(
    SELECT g.id FROM detent.lane_group g
     WHERE g.task = ANY (p_tasks) AND (p_queues IS NULL OR g.queue = ANY (p_queues))
       AND (g.version = 0 OR p_versions IS NULL
            OR EXISTS (SELECT 1 FROM unnest(p_version_tasks, p_versions) AS v (task, version)
                        WHERE v.task = g.task AND v.version = g.version)));
  q      detent.waiting;
  looked integer := 0;
BEGIN
  is_left := EXISTS (
      SELECT 1 FROM unnest(groups) AS g (id)
       CROSS JOIN LATERAL (SELECT 1 FROM detent.ready r WHERE r.lane_id > g.id << 32 AND r.lane_id < (g.id + 1) << 32 LIMIT 1) r)
    OR EXISTS (
      SELECT 1 FROM detent.lease l CROSS JOIN LATERAL unnest(l.job_ids) AS held (job_id)
       CROSS JOIN LATERAL (SELECT k.task, k.queue FROM detent.job k
                            WHERE k.id = held.job_id AND k.lease_id = l.id AND k.state = 'running' OFFSET 0) j
       WHERE j.task = ANY (p_tasks) AND (p_queues IS NULL OR j.queue = ANY (p_queues)));
  IF is_left THEN
    place := 0;
    RETURN;
  END IF;
  FOR q IN SELECT w.* FROM detent.waiting w WHERE w.job_id > p_after ORDER BY w.job_id LIMIT p_limit LOOP
    looked := looked + 1;
    IF q.lane_id >> 32 = ANY (groups) AND (q.limit_key IS NOT NULL OR q.due_at < detent.never() AND NOT EXISTS (
         SELECT 1 FROM detent.workflow f JOIN detent.job j ON j.id = f.job_id
          WHERE f.job_id = q.job_id AND f.parked_attempt = j.ended)) THEN
      is_left := true;
      place := q.job_id - 1;
      RETURN;
    END IF;
  END LOOP;
  IF looked = p_limit THEN
    place := q.job_id;
  END IF;
END $$;

-- failure_report_take: take failures whose hooks have not run yet.
-- takes:   the tasks that the caller knows, how many at most, for how many seconds no other caller gets them
-- gives:   the jobs, and the attempts that failed
-- locks:   their rows; rows that others have locked are skipped
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.failure_report_take_v1(p_tasks text[], p_limit integer, p_seconds double precision)
RETURNS TABLE (job_id bigint, attempt integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t timestamptz := detent.clock();
BEGIN
  RETURN QUERY
    WITH free AS (
      SELECT f.job_id, f.attempt
        FROM (SELECT DISTINCT name FROM unnest(p_tasks) AS a (name)) asked
       CROSS JOIN LATERAL (
         SELECT u.job_id, u.attempt FROM detent.failure_report u
          WHERE u.task = asked.name AND coalesce(u.taken_until <= t, true)
          ORDER BY u.job_id, u.attempt LIMIT p_limit) f
       ORDER BY f.job_id, f.attempt LIMIT p_limit
    ), locked AS (
      SELECT u.job_id, u.attempt FROM detent.failure_report u
       WHERE (u.job_id, u.attempt) IN (SELECT f.job_id, f.attempt FROM free f) AND coalesce(u.taken_until <= t, true)
         FOR UPDATE SKIP LOCKED
    ), taken AS (
      UPDATE detent.failure_report u SET taken_until = t + make_interval(secs => p_seconds)
        FROM locked l WHERE u.job_id = l.job_id AND u.attempt = l.attempt
      RETURNING u.job_id, u.attempt
    )
    SELECT o.job_id, o.attempt FROM taken o ORDER BY o.job_id, o.attempt;
END $$;

-- failure_report_put: put attempts on the list whose end is to be told of, failure or not.
-- takes:   the jobs, the attempts, their tasks
-- gives:   nothing
-- locks:   their rows
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.failure_report_put_v1(p_ids bigint[], p_attempts integer[], p_tasks text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  INSERT INTO detent.failure_report (job_id, attempt, task)
    SELECT u.job_id, u.attempt, u.task FROM unnest(p_ids, p_attempts, p_tasks) AS u (job_id, attempt, task)
     ORDER BY u.job_id, u.attempt
    ON CONFLICT ON CONSTRAINT failure_report_pkey DO NOTHING;
END $$;

-- failure_report_keep: the caller is still running the hooks of these failures.
-- takes:   the jobs, the attempts that failed, for how many seconds more no other caller gets them
-- gives:   nothing
-- locks:   their rows
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.failure_report_keep_v1(p_ids bigint[], p_attempts integer[], p_seconds double precision)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  UPDATE detent.failure_report u SET taken_until = t + make_interval(secs => p_seconds)
    FROM unnest(p_ids, p_attempts) AS told (job_id, attempt)
   WHERE u.job_id = told.job_id AND u.attempt = told.attempt;
END $$;

-- failure_report_done: the hooks of these failures have run.
-- takes:   the jobs, the attempts that failed
-- gives:   nothing
-- locks:   their rows
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.failure_report_done_v1(p_ids bigint[], p_attempts integer[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  DELETE FROM detent.failure_report u USING unnest(p_ids, p_attempts) AS told (job_id, attempt)
   WHERE u.job_id = told.job_id AND u.attempt = told.attempt;
END $$;

-- identity_list: the identities the database has had.
-- takes:   nothing
-- gives:   them, oldest first
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.identity_list_v1() RETURNS SETOF detent.identity
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT i.* FROM detent.identity i ORDER BY i.n;
END $$;

-- identity_renew: give the database a new random identity, for the ids that are reserved from now on.
-- takes:   who, why
-- gives:   the new identity
-- locks:   the identities
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.identity_renew_v1(p_actor text, p_reason text DEFAULT NULL) RETURNS SETOF detent.identity
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t    timestamptz := detent.clock();
  was  detent.identity;
  made detent.identity;
BEGIN
  LOCK TABLE detent.identity IN EXCLUSIVE MODE;
  SELECT i.* INTO was FROM detent.identity i ORDER BY i.n DESC LIMIT 1;
  INSERT INTO detent.identity (n, identity, first_id, made_by, reason, made_at)
    VALUES (coalesce(was.n, 0) + 1, replace(gen_random_uuid()::text, '-', ''),
            CASE WHEN was.n IS NULL THEN 0 ELSE detent.ids_reserve_v1(1) END, p_actor, p_reason, t)
    RETURNING * INTO made;
  INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    VALUES ('database', 'identity', was.identity, made.identity, 'renew', p_actor, p_reason, t);
  RETURN NEXT made;
END $$;
