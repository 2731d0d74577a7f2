-- End an attempt that did not succeed, by the first rule that fits. The job is locked, running and not committed. Its start
-- is taken from `j`: the caller may know better than the row.
CREATE OR REPLACE FUNCTION detent.attempt_abort(
  j detent.job, p_worker text, p_outcome text, p_error text, p_delay double precision, p_fatal boolean, t timestamptz,
  OUT outcome text, OUT state text
)
LANGUAGE plpgsql AS $$
DECLARE
  n      timestamptz := detent.job_now(j, t);
  queued timestamptz := greatest(j.created_at, j.due_at);
  reason text := CASE WHEN p_fatal THEN 'fatal' ELSE 'attempts used up' END;
  spares boolean := false;
  -- Whether it does not count: given back, or its lease ran out, which is rarely the fault of the job.
  free   boolean;
  marker boolean := coalesce(j.effect_told_by = 'marker', false);
  rests  boolean;
BEGIN
  IF p_outcome = 'cancelled' AND j.cancel_requested_at IS NULL THEN
    p_outcome := 'released';
  END IF;
  free := p_outcome IN ('released', 'snoozed', 'throttled');
  IF p_outcome = 'expired' THEN
    free := (SELECT count(*) FROM (SELECT 1 FROM detent.execution e
                                    WHERE e.job_id = j.id AND e.outcome = 'expired' AND NOT e.counted LIMIT 5) s)
            < least(5, j.attempts_max - 1);
  END IF;
  outcome := p_outcome;
  IF detent.committed_before(j.id) IS NOT NULL THEN
    outcome := 'released';
    state := 'pending';
    spares := true;
    p_delay := 0;
  ELSIF p_outcome = 'unknown'
     OR p_outcome IN ('expired', 'crashed', 'timed_out') AND NOT j.idempotent AND j.started_at IS NOT NULL THEN
    outcome := 'unknown';
    reason := 'unknown';
    state := 'quarantined';
    IF j.effect_told_by = 'probe' AND NOT p_fatal
       AND (p_outcome = 'unknown' OR j.attempt - j.spared <= j.attempts_max) THEN
      state := 'pending';
      spares := p_outcome = 'unknown';
      -- What may have happened does not expire unseen.
      j.expires_at := NULL;
    END IF;
  ELSIF marker AND (
      j.cancel_requested_at IS NOT NULL
      OR NOT free AND (p_fatal OR j.attempt - j.spared >= j.attempts_max)) THEN
    outcome := 'unknown';
    reason := 'unknown';
    state := 'quarantined';
  ELSIF j.cancel_requested_at IS NOT NULL
     OR j.task = 'ops.run' AND p_outcome = 'expired' AND j.started_at IS NULL THEN
    state := 'cancelled';
  ELSIF free THEN
    state := 'pending';
    spares := true;
  ELSIF p_fatal OR j.attempt - j.spared >= j.attempts_max THEN
    state := CASE WHEN j.dead_letter THEN 'quarantined' ELSE 'failed' END;
  ELSE
    state := 'pending';
  END IF;
  rests := state <> 'pending';
  IF NOT rests THEN
    j.due_at := n + make_interval(secs => p_delay);
  END IF;
  WITH ended AS (
    UPDATE detent.job u
       SET state = attempt_abort.state, ended = u.attempt, spared = u.spared + spares::integer, due_at = j.due_at,
           expires_at = j.expires_at, started_at = j.started_at, error = CASE WHEN rests THEN p_error END, finished_at = CASE WHEN rests THEN n END
     WHERE u.id = j.id
    RETURNING u.id, u.attempt, u.leased_at, u.started_at
  )
  INSERT INTO detent.execution
      (job_id, attempt, worker, leased_at, started_at, aborted_at, outcome, error, next_state, next_due_at, counted)
    SELECT e.id, e.attempt, p_worker, e.leased_at, e.started_at, n, attempt_abort.outcome, p_error, attempt_abort.state,
           CASE WHEN rests THEN NULL ELSE j.due_at END, NOT spares
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
  -- In the transaction of the ending, so that it is never lost. An ops run has no application that could hear of it.
  IF state IN ('quarantined', 'failed') AND j.task <> 'ops.run' THEN
    INSERT INTO detent.untold (job_id, attempt, task) VALUES (j.id, j.attempt, j.task)
      ON CONFLICT ON CONSTRAINT untold_pkey DO NOTHING;
  END IF;
END $$;
