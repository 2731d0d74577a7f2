-- job_abort: end attempts that did not succeed.
-- takes:   jobs, attempts, outcomes, errors, seconds until due again, whether fatal; the worker's name; how many
--          microseconds after the claim the functions were called (null: they were not, or that is not known); and whether
--          the job is suspected of bringing its process down
-- gives:   one row per item: the outcome on record and the state it led to, or what was found instead of the holder;
--          `committed` if the effect has happened
-- locks:   the jobs, by id; after a throttled one its limit
-- refuses: callers that are not the holder; a committed attempt
CREATE OR REPLACE FUNCTION detent.job_abort_v2(
  p_ids bigint[], p_attempts integer[], p_outcomes text[], p_errors text[], p_delays double precision[],
  p_fatals boolean[], p_worker text, p_begun bigint[], p_suspects boolean[]
) RETURNS TABLE (ord integer, outcome text, state text, committed boolean, instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
  goes_back boolean := false;
  t    timestamptz := detent.clock();
  item record;
  j    detent.job;
BEGIN
  -- All of them before what follows the first one is locked, such as its group of children.
  PERFORM 1 FROM detent.job k WHERE k.id = ANY (p_ids) ORDER BY k.id FOR UPDATE;
  FOR item IN
    SELECT u.* FROM unnest(p_ids, p_attempts, p_outcomes, p_errors, p_delays, p_fatals, p_begun, p_suspects) WITH ORDINALITY
      AS u (id, attempt, outcome, error, delay, fatal, begun, suspect, ord) ORDER BY u.id, u.ord
  LOOP
    ord := item.ord;
    outcome := NULL;
    state := NULL;
    committed := false;
    instead := NULL;
    SELECT k.* INTO j FROM detent.job k WHERE k.id = item.id;
    SELECT e.outcome, e.next_state INTO outcome, state FROM detent.execution e
     WHERE e.job_id = item.id AND e.attempt = item.attempt AND e.outcome = item.outcome;
    IF outcome IS NULL THEN
      committed := coalesce(j.state = 'running' AND j.attempt = item.attempt AND j.committed_at IS NOT NULL, false);
      IF NOT committed THEN
        instead := detent.holder_lost(j, item.attempt, t);
        IF instead IS NULL THEN
          IF item.begun IS NOT NULL THEN
            j.started_at := greatest(j.leased_at, least(
              j.started_at, detent.job_now(j, t), j.leased_at + item.begun * interval '1 microsecond'));
          END IF;
          SELECT a.outcome, a.state INTO outcome, state
            FROM detent.attempt_abort(j, p_worker, item.outcome, item.error, item.delay, item.fatal, t, item.suspect) a;
          goes_back := goes_back OR (state = 'pending' AND item.delay <= 0);
          IF item.outcome = 'throttled' THEN
            PERFORM detent.limit_throttled(j, item.delay, t);
          END IF;
        END IF;
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
  IF goes_back THEN
    PERFORM detent.wake_waiters(false);
  END IF;
END $$;

-- End an attempt that did not succeed, by the first rule that fits. The job is locked, running and not committed. Its start
-- is taken from `j`: the caller may know better than the row. A parked job is due at `p_due_at`.
CREATE OR REPLACE FUNCTION detent.attempt_abort(
  j detent.job, p_worker text, p_outcome text, p_error text, p_delay double precision, p_fatal boolean, t timestamptz,
  p_suspect boolean DEFAULT false, p_due_at timestamptz DEFAULT NULL,
  OUT outcome text, OUT state text
)
LANGUAGE plpgsql AS $$
DECLARE
  n      timestamptz := detent.job_now(j, t);
  queued timestamptz := greatest(j.created_at, j.due_at);
  reason text := CASE WHEN p_fatal THEN 'fatal' ELSE 'attempts used up' END;
  spares boolean := false;
  -- Whether the attempt does not count: it was released, or its lease expired, which is rarely the fault of the job.
  free   boolean;
  marker boolean := coalesce(j.effect_evidence = 'marker', false);
  rests  boolean;
  undo   text;
  -- Whether steps were undone by this attempt, and it did not fail by itself: then the undo goes on.
  undoes boolean;
  -- Whether a requested cancel waits until the steps of a workflow are undone.
  waits  boolean := false;
BEGIN
  -- Whether an undo is not finished is asked only where it matters.
  IF j.cancel_requested_at IS NOT NULL OR p_fatal OR j.attempt - j.spared >= j.attempts_max THEN
    undo := detent.undo_unfinished(j.id);
  END IF;
  IF j.cancel_requested_at IS NOT NULL THEN
    waits := coalesce((SELECT detent.undo_is_open(j, w, p_outcome) FROM detent.workflow w WHERE w.job_id = j.id), false);
  END IF;
  IF p_outcome = 'cancelled' AND (j.cancel_requested_at IS NULL OR waits) THEN
    p_outcome := 'released';
  END IF;
  -- A workflow that has made progress starts again with all its attempts. Plain jobs pay for one look-up, when they are
  -- tried again. For a park, `attempt_park` has done it.
  IF p_outcome <> 'parked' AND j.attempt - j.spared > 1 AND detent.workflow_progressed(j.id, j.attempt) THEN
    j.spared := j.attempt - 1;
  END IF;
  undoes := undo IS NOT NULL AND p_outcome IN ('expired', 'crashed', 'timed_out') AND detent.workflow_progressed(j.id, j.attempt);
  free := p_outcome IN ('released', 'snoozed', 'throttled', 'parked');
  IF p_outcome = 'expired' THEN
    free := (SELECT count(*) FROM (SELECT 1 FROM detent.execution e
                                    WHERE e.job_id = j.id AND e.outcome = 'expired' AND NOT e.counted LIMIT 5) s)
            < CASE WHEN waits THEN 5 ELSE least(5, j.attempts_max - 1) END;
  END IF;
  outcome := p_outcome;
  IF detent.committed_before(j.id) IS NOT NULL THEN
    outcome := 'released';
    state := 'pending';
    spares := true;
    p_delay := 0;
    p_due_at := NULL;
  ELSIF p_outcome = 'unknown'
     OR p_outcome IN ('expired', 'crashed', 'timed_out') AND NOT j.idempotent AND j.started_at IS NOT NULL THEN
    outcome := 'unknown';
    reason := 'unknown';
    state := 'quarantined';
    IF j.effect_evidence = 'probe' AND NOT p_fatal
       AND (p_outcome = 'unknown' OR j.attempt - j.spared <= j.attempts_max) THEN
      state := 'pending';
      spares := p_outcome = 'unknown';
      -- An effect that may have happened must not expire unseen.
      j.expires_at := NULL;
    END IF;
  ELSIF marker AND (
      j.cancel_requested_at IS NOT NULL
      OR NOT free AND (p_fatal OR j.attempt - j.spared >= j.attempts_max)) THEN
    outcome := 'unknown';
    reason := 'unknown';
    state := 'quarantined';
  ELSIF j.cancel_requested_at IS NOT NULL AND NOT waits
     OR j.task = 'ops.run' AND p_outcome = 'expired' AND j.started_at IS NULL THEN
    state := 'cancelled';
  ELSIF free THEN
    state := 'pending';
    spares := true;
  ELSIF NOT undoes AND (p_fatal OR j.attempt - j.spared >= j.attempts_max) THEN
    state := CASE WHEN j.dead_letter OR undo IS NOT NULL THEN 'quarantined' ELSE 'failed' END;
    reason := CASE WHEN undo IS NULL THEN reason ELSE 'undo failed' END;
  ELSE
    state := 'pending';
  END IF;
  rests := state <> 'pending';
  IF NOT rests THEN
    j.due_at := CASE WHEN p_due_at IS NULL THEN n + make_interval(secs => p_delay) ELSE greatest(p_due_at, n) END;
    IF outcome = 'parked' THEN
      j.expires_at := NULL;
    END IF;
  END IF;
  WITH ended AS (
    UPDATE detent.job u
       SET state = attempt_abort.state, ended = u.attempt, spared = j.spared + spares::integer, due_at = j.due_at,
           expires_at = j.expires_at, started_at = j.started_at, error = CASE WHEN rests THEN p_error END, finished_at = CASE WHEN rests THEN n END
     WHERE u.id = j.id
    RETURNING u.id, u.attempt, u.leased_at, u.started_at
  )
  INSERT INTO detent.execution
      (job_id, attempt, worker, leased_at, started_at, aborted_at, outcome, error, next_state, next_due_at, counted, suspect)
    SELECT e.id, e.attempt, p_worker, e.leased_at, e.started_at, n, attempt_abort.outcome, p_error, attempt_abort.state,
           CASE WHEN rests THEN NULL ELSE j.due_at END, NOT spares, p_suspect
      FROM ended e;
  INSERT INTO detent.transition_delta (at, task, from_state, to_state, outcome, held_us, ran_us, waited_us)
    VALUES (n, j.task, 'running', state, outcome, detent.micros_between(j.leased_at, n),
            CASE WHEN j.started_at IS NOT NULL THEN detent.micros_between(j.started_at, n) END,
            detent.micros_between(queued, j.leased_at));
  IF state = 'pending' THEN
    PERFORM detent.queue_enter(j, n);
  ELSIF state = 'quarantined' THEN
    INSERT INTO detent.dead (job_id, tenant, queue, task, reason, quarantined_at)
      VALUES (j.id, j.tenant, j.queue, j.task, reason, n);
  END IF;
  -- In the transaction of the ending, so that no failure is lost. An ops run has no failure hooks.
  IF state IN ('quarantined', 'failed') AND j.task <> 'ops.run' THEN
    INSERT INTO detent.failure_report (job_id, attempt, task) VALUES (j.id, j.attempt, j.task)
      ON CONFLICT ON CONSTRAINT failure_report_pkey DO NOTHING;
  END IF;
END $$;

-- End a committed attempt as done. The job is locked, running and committed.
CREATE OR REPLACE FUNCTION detent.attempt_done(j detent.job, p_worker text, t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  n timestamptz := detent.job_now(j, t);
BEGIN
  WITH ended AS (
    UPDATE detent.job u SET state = 'succeeded', ended = u.attempt, finished_at = n, error = NULL
     WHERE u.id = j.id
    RETURNING u.id, u.attempt, u.leased_at, u.started_at, u.committed_at
  ), counted AS (
    INSERT INTO detent.succeeded_batch (job_ids) SELECT array_agg(e.id) FROM ended e HAVING count(*) > 0
  )
  INSERT INTO detent.execution
      (job_id, attempt, worker, leased_at, started_at, committed_at, done_at, outcome, next_state, counted)
    SELECT e.id, e.attempt, p_worker, e.leased_at, e.started_at, e.committed_at, n, 'done', 'succeeded', true FROM ended e;
END $$;

-- Whether this attempt ended without harm and did not count: it was released, snoozed, throttled or parked.
CREATE OR REPLACE FUNCTION detent.was_given_back(p_job_id bigint, p_attempt integer) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT 1 FROM detent.execution e
                  WHERE e.job_id = p_job_id AND e.attempt = p_attempt AND NOT e.counted
                    AND e.outcome IN ('released', 'snoozed', 'throttled', 'parked'));
END $$;

-- job_recover: bring committed jobs to succeeded.
-- takes:   jobs
-- gives:   one row per job that is there: its attempt, whether it is committed, and the state it was found in
-- locks:   the jobs, by id
-- refuses: what is not committed
CREATE OR REPLACE FUNCTION detent.job_recover_v1(p_ids bigint[])
RETURNS TABLE (job_id bigint, attempt integer, committed boolean, state text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t timestamptz := detent.clock();
  j detent.job;
BEGIN
  -- All of them before what follows the first one is locked: the loop reads a few at a time.
  PERFORM 1 FROM detent.job k WHERE k.id = ANY (p_ids) ORDER BY k.id FOR UPDATE;
  FOR j IN SELECT k.* FROM detent.job k WHERE k.id = ANY (p_ids) ORDER BY k.id LOOP
    IF j.committed_at IS NOT NULL AND j.state = 'running' THEN
      PERFORM detent.attempt_done(j, coalesce((SELECT l.worker FROM detent.lease l WHERE l.id = j.lease_id), ''), t);
    END IF;
    job_id := j.id;
    attempt := j.attempt;
    committed := j.committed_at IS NOT NULL;
    state := j.state;
    RETURN NEXT;
  END LOOP;
END $$;

-- lease_reap: take expired leases away.
-- takes:   how many leases at most; of which task the jobs under them must be (null is any); for how many seconds after a gap
--          in the watch leases that ran out in it are spared (null is none)
-- gives:   how many leases are gone; the jobs whose attempt ended as expired (or unknown), and the committed ones that
--          were brought to succeeded; how many expired leases stay, since other sessions have their jobs locked
-- locks:   the lease rows and the jobs under them; rows that others hold are skipped
-- refuses: nothing
-- differs: SQLite has one writer, so no job is ever skipped there
CREATE OR REPLACE FUNCTION detent.lease_reap_v2(
  p_limit integer, p_task text DEFAULT NULL, p_grace double precision DEFAULT NULL
)
RETURNS TABLE (leases integer, aborted bigint[], recovered bigint[], passed_over integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
  t     timestamptz := detent.clock();
  lease detent.lease;
  j     detent.job;
  gap   record;
BEGIN
  gap := detent.unwatched(t, p_grace);
  leases := 0;
  aborted := '{}';
  recovered := '{}';
  passed_over := 0;
  -- A lease that was renewed meanwhile fails the condition once it is locked: the statement that acts checks the expiry.
  FOR lease IN
    SELECT l.* FROM detent.lease l
     WHERE l.expires_at <= t AND (l.expires_at > gap.from_at AND l.expires_at <= gap.to_at) IS NOT TRUE
       AND (p_task IS NULL OR EXISTS (SELECT 1 FROM detent.job k WHERE k.id = ANY (l.job_ids) AND k.task = p_task))
     ORDER BY l.expires_at, l.id LIMIT p_limit FOR UPDATE SKIP LOCKED
  LOOP
    FOR j IN
      SELECT k.* FROM detent.job k
       WHERE k.id = ANY (lease.job_ids) AND k.lease_id = lease.id AND k.state = 'running'
       ORDER BY k.id FOR UPDATE SKIP LOCKED
    LOOP
      IF j.committed_at IS NULL THEN
        PERFORM detent.attempt_abort(j, lease.worker, 'expired', NULL, 0, false, t);
        aborted := aborted || j.id;
      ELSE
        PERFORM detent.attempt_done(j, lease.worker, t);
        recovered := recovered || j.id;
      END IF;
    END LOOP;
    DELETE FROM detent.lease l
     WHERE l.id = lease.id AND NOT EXISTS (
       SELECT 1 FROM detent.job k WHERE k.id = ANY (lease.job_ids) AND k.lease_id = lease.id AND k.state = 'running');
    IF FOUND THEN
      leases := leases + 1;
    ELSE
      passed_over := passed_over + 1;
    END IF;
  END LOOP;
  IF cardinality(aborted) > 0 THEN
    PERFORM detent.wake_waiters(false);
  END IF;
  RETURN NEXT;
END $$;

-- lease_reap_each: take expired leases away, job by job.
-- takes:   how many leases at most; the leases to leave out; the grace, as for lease_reap
-- gives:   as lease_reap; and of each job that could not be ended its lease, its id and why
-- locks:   the lease rows and the jobs under them; rows that others hold are skipped
-- refuses: nothing
-- differs: SQLite keeps the jobs of a lease as JSON text, so there a lease itself can be unreadable
CREATE OR REPLACE FUNCTION detent.lease_reap_each_v2(p_limit integer, p_skip bigint[], p_grace double precision)
RETURNS TABLE (leases integer, aborted bigint[], recovered bigint[], passed_over integer, bad_leases bigint[],
               bad_jobs bigint[], causes text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
  t      timestamptz := detent.clock();
  lease  detent.lease;
  j      detent.job;
  is_bad boolean;
  gap    record;
BEGIN
  gap := detent.unwatched(t, p_grace);
  leases := 0;
  aborted := '{}';
  recovered := '{}';
  passed_over := 0;
  bad_leases := '{}';
  bad_jobs := '{}';
  causes := '{}';
  FOR lease IN
    SELECT l.* FROM detent.lease l
     WHERE l.expires_at <= t AND (l.expires_at > gap.from_at AND l.expires_at <= gap.to_at) IS NOT TRUE AND l.id <> ALL (p_skip)
     ORDER BY l.expires_at, l.id LIMIT p_limit FOR UPDATE SKIP LOCKED
  LOOP
    is_bad := false;
    FOR j IN
      SELECT k.* FROM detent.job k
       WHERE k.id = ANY (lease.job_ids) AND k.lease_id = lease.id AND k.state = 'running'
       ORDER BY k.id FOR UPDATE SKIP LOCKED
    LOOP
      BEGIN
        IF j.committed_at IS NULL THEN
          PERFORM detent.attempt_abort(j, lease.worker, 'expired', NULL, 0, false, t);
          aborted := aborted || j.id;
        ELSE
          PERFORM detent.attempt_done(j, lease.worker, t);
          recovered := recovered || j.id;
        END IF;
      EXCEPTION WHEN OTHERS THEN
        IF NOT detent.is_of_one_row(SQLSTATE) THEN
          RAISE;
        END IF;
        is_bad := true;
        bad_leases := bad_leases || lease.id;
        bad_jobs := bad_jobs || j.id;
        causes := causes || SQLERRM;
      END;
    END LOOP;
    DELETE FROM detent.lease l
     WHERE l.id = lease.id AND NOT EXISTS (
       SELECT 1 FROM detent.job k WHERE k.id = ANY (lease.job_ids) AND k.lease_id = lease.id AND k.state = 'running');
    IF FOUND THEN
      leases := leases + 1;
    ELSIF NOT is_bad THEN
      passed_over := passed_over + 1;
    END IF;
  END LOOP;
  IF cardinality(aborted) > 0 THEN
    PERFORM detent.wake_waiters(false);
  END IF;
  RETURN NEXT;
END $$;

-- The last period without a worker's heartbeat, if it ended less than `p_grace` seconds before `t`; else nulls. A period that
-- lasts until now, and was not recorded yet, ends now.
CREATE OR REPLACE FUNCTION detent.unwatched(
  t timestamptz, p_grace double precision, OUT from_at timestamptz, OUT to_at timestamptz
)
LANGUAGE plpgsql STABLE AS $$
BEGIN
  SELECT CASE WHEN w.watched_at < t - interval '5 seconds' THEN w.watched_at ELSE w.gap_from END,
         CASE WHEN w.watched_at < t - interval '5 seconds' THEN t ELSE w.gap_to END
    INTO from_at, to_at FROM detent.watch w;
  IF p_grace IS NULL OR to_at <= t - make_interval(secs => p_grace) THEN
    from_at := NULL;
    to_at := NULL;
  END IF;
END $$;
