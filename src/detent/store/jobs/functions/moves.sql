-- job_cancel: stop jobs.
-- takes:   jobs, who, why; p_undo: whether workflows undo their steps (without it, a reason is needed)
-- gives:   one row per item: the state it is in now; the attempt that has committed; whether the move was refused; a row
--          without state if there is no such job
-- locks:   the jobs, by id, each with its ready or waiting row first
-- refuses: committed jobs; failed and quarantined jobs
-- A workflow that is pending and has steps to undo stays pending: a worker undoes them and cancels it. To cancel a graph cancels
-- its nodes. The children of a workflow are left to tree_cancel_step.
CREATE OR REPLACE FUNCTION detent.job_cancel_v1(
  p_ids bigint[], p_actor text, p_reason text DEFAULT NULL, p_undo boolean DEFAULT true
)
RETURNS TABLE (ord integer, state text, committed_attempt integer, refused boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  item record;
  j    detent.job;
BEGIN
  IF NOT p_undo AND coalesce(p_reason, '') = '' THEN
    RAISE EXCEPTION 'DT020 reason: found nothing; allowed: a reason, because the steps of workflows are not undone'
      USING ERRCODE = 'DT020';
  END IF;
  PERFORM detent.jobs_lock(p_ids);
  FOR item IN SELECT u.* FROM unnest(p_ids) WITH ORDINALITY AS u (id, ord) ORDER BY u.id, u.ord LOOP
    ord := item.ord;
    SELECT k.* INTO j FROM detent.job k WHERE k.id = item.id;
    committed_attempt := CASE WHEN j.committed_at IS NOT NULL THEN j.attempt END;
    refused := coalesce(j.state NOT IN ('running', 'succeeded', 'cancelled')
                        AND NOT detent.is_job_move('cancel', j.state, 'cancelled'), false);
    -- The clock after the lock, so that it is not earlier than a move that this one waited for.
    state := detent.job_cancel_one(j, p_actor, p_reason, p_undo, detent.clock());
    RETURN NEXT;
  END LOOP;
END $$;

-- Cancel a job, which is locked, or request it; gives the state it is in then. Whatever may not be cancelled stays as it is.
-- p_root_id: the job with which the cancel of a tree began.
CREATE OR REPLACE FUNCTION detent.job_cancel_one(
  j detent.job, p_actor text, p_reason text, p_undo boolean, t timestamptz, p_root_id bigint DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  about text := CASE WHEN NOT p_undo THEN '{"undo":false}' END;
  -- A second request changes nothing, unless it is the first that says that nothing is undone.
  asks  boolean := j.cancel_requested_at IS NULL OR NOT p_undo AND j.cancel_undo IS DISTINCT FROM false;
  done  text := j.state;
  w     detent.workflow;
BEGIN
  -- Only a job that was claimed has recorded anything.
  IF j.attempt > 0 THEN
    SELECT f.* INTO w FROM detent.workflow f WHERE f.job_id = j.id;
  END IF;
  IF detent.is_job_move('cancel', j.state, 'cancelled') AND NOT (p_undo AND detent.undo_is_open(j, w)) THEN
    PERFORM detent.job_put_away(j, 'cancelled', 'cancel', p_actor, p_reason, t, about);
    done := 'cancelled';
    IF j.task = 'detent.graph' THEN
      PERFORM detent.graph_cancel(j.id, p_actor, p_reason, p_undo, t);
    END IF;
  ELSIF j.state IN ('pending', 'running') AND j.committed_at IS NULL AND asks THEN
    PERFORM detent.job_request_cancel(j, p_actor, p_reason, p_undo, t);
    IF j.task = 'ops.run' THEN
      -- Its holder renews nothing and so never hears of a request: the run ends at once, and the holder is refused.
      SELECT u.* INTO j FROM detent.job u WHERE u.id = j.id;
      PERFORM detent.attempt_abort(j, (SELECT l.worker FROM detent.lease l WHERE l.id = j.lease_id), 'cancelled',
                                   NULL, 0, true, t);
      done := 'cancelled';
    END IF;
  ELSE
    RETURN done;
  END IF;
  IF w.job_id IS NOT NULL THEN
    PERFORM detent.tree_cancel_add(
      j.id, coalesce(p_root_id, j.id), p_actor,
      CASE WHEN p_root_id IS NULL THEN concat_ws(': ', 'with job ' || j.id, p_reason) ELSE p_reason END, p_undo);
  END IF;
  RETURN done;
END $$;

-- Request that a job is cancelled, which is locked. A pending one is due now: a worker undoes its steps.
CREATE OR REPLACE FUNCTION detent.job_request_cancel(
  j detent.job, p_actor text, p_reason text, p_undo boolean, t timestamptz
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  n timestamptz := detent.job_now(j, t);
  q detent.waiting;
BEGIN
  PERFORM detent.job_log(j, j.state, 'request_cancel', p_actor, p_reason, n, CASE WHEN NOT p_undo THEN '{"undo":false}' END);
  UPDATE detent.job k
     SET cancel_requested_at = n, cancel_requested_by = p_actor, cancel_reason = p_reason,
         cancel_undo = CASE WHEN NOT p_undo THEN false END
   WHERE k.id = j.id;
  IF j.state = 'pending' THEN
    DELETE FROM detent.waiting w WHERE w.job_id = j.id AND w.limit_key IS NULL RETURNING w.* INTO q;
    IF FOUND THEN
      INSERT INTO detent.ready (lane_id, ready_at, job_id, holds_key, expires_at)
        VALUES (q.lane_id, n, j.id, q.holds_key, q.expires_at);
      UPDATE detent.job k SET due_at = n WHERE k.id = j.id;
      PERFORM detent.wake_waiters(false);
    END IF;
  END IF;
END $$;

-- job_retry: move failed, quarantined and cancelled jobs back to pending, with all attempts.
-- takes:   jobs, who, why; p_notify: always notify waiters, instead of looking first whether a worker waits
-- gives:   one row per item: the state it was found in, null if there is no such job; whether it was moved; the state of an
--          ops run; the run that is being rolled back, or that the job carries, or the job that undoes its steps and has not
--          succeeded, if that is why it was refused
-- locks:   the jobs, by id, each with its ready or waiting row first
-- refuses: what is running or has succeeded; ops runs, which end once; targets of a batch run that is being rolled back; jobs
--          that carry a pipeline run, which are retried with it
CREATE OR REPLACE FUNCTION detent.job_retry_v2(
  p_ids bigint[], p_actor text, p_reason text DEFAULT NULL, p_notify boolean DEFAULT true
)
RETURNS TABLE (ord integer, from_state text, moved boolean, run_state text, busy_run_id bigint, carried_run_id bigint,
               undo_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t    timestamptz := detent.clock();
  item record;
  j    detent.job;
BEGIN
  PERFORM detent.jobs_lock(p_ids);
  FOR item IN SELECT u.* FROM unnest(p_ids) WITH ORDINALITY AS u (id, ord) ORDER BY u.id, u.ord LOOP
    ord := item.ord;
    SELECT k.* INTO j FROM detent.job k WHERE k.id = item.id;
    from_state := j.state;
    run_state := detent.ops_run_state(j);
    moved := coalesce(run_state IS NULL AND detent.is_job_move('retry', j.state, 'pending'), false);
    busy_run_id := NULL;
    carried_run_id := NULL;
    undo_id := NULL;
    IF moved AND j.run_id IS NOT NULL AND EXISTS (
         SELECT 1 FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id
          WHERE g.apply_job_id = j.id AND b.rollback_requested_at IS NOT NULL) THEN
      busy_run_id := j.run_id;
    ELSIF moved AND detent.carries_run(j) THEN
      carried_run_id := j.run_id;
    ELSIF moved THEN
      undo_id := (SELECT u.id FROM detent.workflow w JOIN detent.job u ON u.id = w.undone_by
                   WHERE w.job_id = j.id AND u.state <> 'succeeded');
    END IF;
    moved := moved AND busy_run_id IS NULL AND carried_run_id IS NULL AND undo_id IS NULL;
    IF moved THEN
      PERFORM detent.job_back(j, p_actor, p_reason, t);
      IF j.task = 'detent.graph' THEN
        PERFORM detent.graph_retry(j.id, p_actor, p_reason, t);
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
  PERFORM detent.wake_waiters(p_notify);
END $$;

-- job_discard: give up quarantined and failed jobs.
-- takes:   jobs, who, why
-- gives:   one row per item: the state it was found in, null if there is no such job; whether it was moved; the state of an
--          ops run
-- locks:   the jobs, by id, each with its ready or waiting row first
-- refuses: what is pending, running or has succeeded; ops runs, which end once
CREATE OR REPLACE FUNCTION detent.job_discard_v2(p_ids bigint[], p_actor text, p_reason text DEFAULT NULL)
RETURNS TABLE (ord integer, from_state text, moved boolean, run_state text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t    timestamptz := detent.clock();
  item record;
  j    detent.job;
BEGIN
  PERFORM detent.jobs_lock(p_ids);
  FOR item IN SELECT u.* FROM unnest(p_ids) WITH ORDINALITY AS u (id, ord) ORDER BY u.id, u.ord LOOP
    ord := item.ord;
    SELECT k.* INTO j FROM detent.job k WHERE k.id = item.id;
    from_state := j.state;
    run_state := detent.ops_run_state(j);
    moved := coalesce(run_state IS NULL AND detent.is_job_move('discard', j.state, 'cancelled'), false);
    IF moved THEN
      PERFORM detent.job_put_away(j, 'cancelled', 'discard', p_actor, p_reason, t);
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;

-- job_force: an operator's override.
-- takes:   a job, where to, who, why: both are required
-- gives:   the state it was found in, whether it was moved, the state of an ops run; no row if there is no such job
-- locks:   the job, with its ready or waiting row first
-- refuses: what the lifecycle does not declare as forced; ops runs
CREATE OR REPLACE FUNCTION detent.job_force_v2(p_job_id bigint, p_to text, p_actor text, p_reason text)
RETURNS TABLE (from_state text, moved boolean, run_state text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  j detent.job := detent.job_lock(p_job_id);
BEGIN
  IF j.id IS NULL THEN
    RETURN;
  END IF;
  from_state := j.state;
  run_state := detent.ops_run_state(j);
  moved := coalesce(run_state IS NULL AND detent.is_job_move('force', j.state, p_to), false);
  IF moved THEN
    PERFORM detent.job_put_away(j, p_to, 'force', p_actor, p_reason, detent.clock());
  END IF;
  RETURN NEXT;
END $$;

-- effect_settle: record what a person found out about an unknown effect.
-- takes:   a job, whether it has happened, who, why, the result if there is one
-- gives:   the state it was found in, why it was quarantined, and whether it was settled; no row if there is no such job
-- locks:   the job, with its ready or waiting row first
-- refuses: what is not quarantined as unknown
CREATE OR REPLACE FUNCTION detent.effect_settle_v1(
  p_job_id bigint, p_done boolean, p_actor text, p_reason text, p_result text DEFAULT NULL
) RETURNS TABLE (from_state text, dead_reason text, settled boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  j detent.job := detent.job_lock(p_job_id);
  n timestamptz;
BEGIN
  IF j.id IS NULL THEN
    RETURN;
  END IF;
  from_state := j.state;
  dead_reason := (SELECT d.reason FROM detent.dead d WHERE d.job_id = p_job_id);
  settled := j.state = 'quarantined' AND coalesce(dead_reason = 'unknown', false);
  IF settled THEN
    n := detent.job_now(j, detent.clock());
    PERFORM detent.job_log(j, CASE WHEN p_done THEN 'succeeded' ELSE 'pending' END, 'settle', p_actor, p_reason, n);
    IF p_done THEN
      DELETE FROM detent.dead d WHERE d.job_id = p_job_id;
      UPDATE detent.job k SET state = 'succeeded', finished_at = n, committed_at = n, result = p_result, error = NULL
       WHERE k.id = p_job_id;
    ELSE
      PERFORM detent.job_unsettled(j, n);
    END IF;
  END IF;
  RETURN NEXT;
END $$;

-- Move a quarantined job, of which a person has settled something, back to pending. The caller has locked it and logged the move.
CREATE OR REPLACE FUNCTION detent.job_unsettled(j detent.job, n timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  j.due_at := n;
  j.expires_at := CASE WHEN j.expires_at > n THEN j.expires_at END;
  DELETE FROM detent.dead d WHERE d.job_id = j.id;
  UPDATE detent.job k
     SET state = 'pending', spared = k.attempt, due_at = n, result = NULL, error = NULL, finished_at = NULL,
         expires_at = j.expires_at, cancel_requested_at = NULL, cancel_requested_by = NULL, cancel_reason = NULL,
         cancel_undo = NULL
   WHERE k.id = j.id;
  PERFORM detent.queue_enter(j, n);
  PERFORM detent.wake_waiters(false);
END $$;

-- job_move: put pending jobs into another queue, or give them another priority.
-- takes:   jobs, queue and priority (null: as it is), who, why, what the record says about where they went
-- gives:   one row per item: the state it was found in, null if there is no such job; whether it was moved
-- locks:   the jobs, by id, each with its ready or waiting row first
-- refuses: what is not pending
CREATE OR REPLACE FUNCTION detent.job_move_v1(
  p_ids bigint[], p_queue text, p_priority smallint, p_actor text, p_reason text, p_metadata text
) RETURNS TABLE (ord integer, from_state text, moved boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t    timestamptz;
  item record;
  j    detent.job;
  old  bigint;
  new  bigint;
BEGIN
  FOR item IN SELECT u.* FROM unnest(p_ids) WITH ORDINALITY AS u (id, ord) ORDER BY u.id, u.ord LOOP
    ord := item.ord;
    j := detent.job_lock(item.id);
    t := detent.clock();  -- after the lock, so that it is not earlier than a move that this one waited for
    from_state := j.state;
    moved := coalesce(
      j.state = 'pending' AND (j.queue <> coalesce(p_queue, j.queue) OR j.priority <> coalesce(p_priority, j.priority)),
      false);
    IF moved THEN
      INSERT INTO detent.transition_log (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor,
          reason, metadata, correlation_id, at)
        VALUES (j.tenant, 'job', j.id::text, j.id, j.attempt, 'pending', 'pending', 'move', p_actor, p_reason, p_metadata,
                j.correlation_id, detent.job_now(j, t));
      old := detent.lane_of_job(j);
      j.queue := coalesce(p_queue, j.queue);
      j.priority := coalesce(p_priority, j.priority);
      new := detent.lane_of_job(j);
      UPDATE detent.waiting w SET lane_id = new, priority = j.priority WHERE w.job_id = j.id;
      IF NOT FOUND THEN
        UPDATE detent.ready r SET lane_id = new WHERE r.lane_id = old AND r.ready_at = j.due_at AND r.job_id = j.id;
        IF NOT FOUND THEN
          PERFORM detent.job_misplaced(j.id);
        END IF;
      END IF;
      UPDATE detent.job SET queue = j.queue, priority = j.priority WHERE id = j.id;
    END IF;
    RETURN NEXT;
  END LOOP;
  PERFORM detent.wake_waiters(false);
END $$;

-- Whether the lifecycle of jobs declares this move for this trigger. The list is filled in from lifecycle/library.py.
CREATE OR REPLACE FUNCTION detent.is_job_move(p_trigger text, p_from text, p_to text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT p_trigger || ' ' || p_from || ' ' || p_to = ANY ('{{{job.triggers}}}'::text[])
$$;

-- Whether a job plans, fetches or consolidates a pipeline run: when it rests without success, its run has gone on without it.
CREATE OR REPLACE FUNCTION detent.carries_run(j detent.job) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN j.run_id IS NOT NULL AND (j.task LIKE 'detent.pipeline.page/%' OR j.task LIKE 'detent.pipeline.plan/%'
                                   OR j.task LIKE 'detent.pipeline.consolidate/%');
END $$;

-- The state of an ops run in its own lifecycle; null for every other job.
CREATE OR REPLACE FUNCTION detent.ops_run_state(j detent.job) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN CASE WHEN j.task = 'ops.run' THEN detent.ops_state(j.state, j.started_at) END;
END $$;

-- The job, locked; a pending one together with its ready or waiting row, which is locked first, as a claim does it.
-- A row of nulls if there is no such job.
CREATE OR REPLACE FUNCTION detent.job_lock(p_job_id bigint) RETURNS detent.job
LANGUAGE plpgsql AS $$
DECLARE
  seen   detent.job;
  locked detent.job;
  in_line boolean;
  lane    bigint;
BEGIN
  -- The job may be claimed, promoted or released before it is locked. Then the loop starts again.
  FOR round IN 1 .. 10 LOOP
    SELECT j.* INTO seen FROM detent.job j WHERE j.id = p_job_id;
    in_line := false;
    IF seen.state = 'pending' THEN
      lane := detent.lane_of_job(seen);
      PERFORM 1 FROM detent.ready r
        WHERE r.lane_id = lane AND r.ready_at = seen.due_at AND r.job_id = p_job_id FOR UPDATE;
      in_line := FOUND;
      IF NOT in_line THEN
        PERFORM 1 FROM detent.waiting w WHERE w.job_id = p_job_id FOR UPDATE;
        in_line := FOUND;
      END IF;
    END IF;
    SELECT j.* INTO locked FROM detent.job j WHERE j.id = p_job_id FOR UPDATE;
    EXIT WHEN locked.id IS NULL OR locked.state <> 'pending' OR in_line AND locked.due_at = seen.due_at;
  END LOOP;
  RETURN locked;
END $$;

-- Lock jobs in the order of their ids, each as job_lock does. A verb that may end several jobs locks all of them before it moves the
-- first one: what follows a job, such as its group of children, is locked after it, and whoever ends another job of the group holds
-- that job and waits for the group.
CREATE OR REPLACE FUNCTION detent.jobs_lock(p_ids bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  id bigint;
BEGIN
  FOR id IN SELECT DISTINCT u.id FROM unnest(p_ids) AS u (id) ORDER BY u.id LOOP
    PERFORM detent.job_lock(id);
  END LOOP;
END $$;

-- The clock, but never before anything that has happened to the job.
CREATE OR REPLACE FUNCTION detent.job_now(j detent.job, t timestamptz) RETURNS timestamptz
LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF j.state = 'pending' AND j.ended > 0 THEN
    t := greatest(t, (SELECT e.aborted_at FROM detent.execution e WHERE e.job_id = j.id AND e.attempt = j.ended));
  END IF;
  RETURN greatest(t, j.created_at, j.leased_at, j.started_at, j.committed_at, j.finished_at, j.cancel_requested_at);
END $$;

-- The record of an explicit move of a job. It is written before the move: the guard looks for it.
CREATE OR REPLACE FUNCTION detent.job_log(
  j detent.job, p_to text, p_trigger text, p_actor text, p_reason text, t timestamptz, p_metadata text DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO detent.transition_log
      (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor, reason, metadata, correlation_id,
       forced, at)
    VALUES (j.tenant, 'job', j.id::text, j.id, j.attempt, j.state, p_to, p_trigger, p_actor, p_reason, p_metadata,
            j.correlation_id, p_trigger = 'force', t);
  IF p_to <> j.state THEN
    PERFORM detent.transition_count(j, p_to, t);
  END IF;
END $$;

-- Count an explicit move of a job for the figures. A pending job has been so since it was due.
CREATE OR REPLACE FUNCTION detent.transition_count(j detent.job, p_to text, t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO detent.transition_delta (at, task, from_state, to_state, outcome, held_us, waited_us)
    VALUES (t, j.task, j.state, p_to, '', detent.micros_between(CASE j.state
      WHEN 'pending' THEN greatest(j.created_at, j.due_at) WHEN 'running' THEN j.leased_at ELSE j.finished_at END, t), 0);
END $$;

-- A logged move to a state of rest: cancel, discard, force. The job is locked, and the move is declared.
CREATE OR REPLACE FUNCTION detent.job_put_away(
  j detent.job, p_to text, p_trigger text, p_actor text, p_reason text, t timestamptz, p_metadata text DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  n timestamptz := detent.job_now(j, t);
BEGIN
  PERFORM detent.job_log(j, p_to, p_trigger, p_actor, p_reason, n, p_metadata);
  PERFORM detent.queue_leave(j);
  DELETE FROM detent.dead d WHERE d.job_id = j.id;
  UPDATE detent.job SET state = p_to, finished_at = n,
         committed_at = CASE WHEN p_to = 'succeeded' THEN coalesce(committed_at, n) ELSE committed_at END
   WHERE id = j.id;
  IF p_to = 'quarantined' THEN
    INSERT INTO detent.dead (job_id, tenant, queue, task, reason, quarantined_at)
      VALUES (j.id, j.tenant, j.queue, j.task, 'forced', n);
  END IF;
END $$;

-- Move a job at rest without success back to pending, with all attempts. The caller has locked it.
CREATE OR REPLACE FUNCTION detent.job_back(j detent.job, p_actor text, p_reason text, t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  n timestamptz := detent.job_now(j, t);
BEGIN
  -- A job that was cancelled before it was due keeps its due time; an expiry that has passed no longer counts. A workflow that was
  -- parked looks again what has arrived.
  PERFORM detent.job_log(j, 'pending', 'retry', p_actor, p_reason, n);
  j.due_at := CASE WHEN j.due_at <= n OR EXISTS (
                SELECT 1 FROM detent.workflow w WHERE w.job_id = j.id AND w.parked_attempt = j.ended) THEN n ELSE j.due_at END;
  j.expires_at := CASE WHEN j.expires_at > n THEN j.expires_at END;
  DELETE FROM detent.dead d WHERE d.job_id = j.id;
  UPDATE detent.job
     SET state = 'pending', spared = attempt, due_at = j.due_at, result = NULL, error = NULL, finished_at = NULL,
         expires_at = j.expires_at, cancel_requested_at = NULL, cancel_requested_by = NULL, cancel_reason = NULL, cancel_undo = NULL
   WHERE id = j.id;
  PERFORM detent.queue_enter(j, n);
END $$;

-- The refusal of a move of a pending job whose queue, priority or due time was changed by hand.
CREATE OR REPLACE FUNCTION detent.job_misplaced(p_job_id bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'DT041 job % is not in the queue where its queue, priority and due time say; `detent repair` puts it right', p_job_id
    USING ERRCODE = 'DT041';
END $$;

-- A job that stops being pending loses its queue row, and the key it held only until then. If the queue row is not where
-- the job row says, it was changed by hand: nothing is done.
CREATE OR REPLACE FUNCTION detent.queue_leave(j detent.job) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  lane bigint;
BEGIN
  IF j.state = 'pending' THEN
    DELETE FROM detent.waiting w WHERE w.job_id = j.id;
    IF NOT FOUND THEN
      lane := detent.lane_of_job(j);
      DELETE FROM detent.ready r
        WHERE r.lane_id = lane AND r.ready_at = j.due_at AND r.job_id = j.id;
      IF NOT FOUND THEN
        PERFORM detent.job_misplaced(j.id);
      END IF;
    END IF;
    DELETE FROM detent.job_key k WHERE k.job_id = j.id AND k.until_claim;
  END IF;
END $$;
