-- undo_begin: record that the steps of a workflow are being undone.
-- takes:   a job and its attempt, and why
-- gives:   what was found instead of the holder, or the cause on record; `waived` if a cancel was requested that undoes nothing
-- locks:   the job
-- refuses: callers that are not the holder, a committed attempt
CREATE OR REPLACE FUNCTION detent.undo_begin_v1(
  p_job_id bigint, p_attempt integer, p_cause text, OUT instead text, OUT cause text, OUT waived boolean
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := detent.clock();
  j detent.job;
BEGIN
  SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id FOR UPDATE;
  instead := detent.step_refused(j, p_attempt, t);
  waived := j.cancel_requested_at IS NOT NULL AND j.cancel_undo IS FALSE;
  IF instead IS NULL AND NOT waived THEN
    UPDATE detent.workflow w
       SET undoing_since = coalesce(w.undoing_since, detent.job_now(j, t)), undo_cause = coalesce(w.undo_cause, p_cause)
     WHERE w.job_id = p_job_id RETURNING w.undo_cause INTO cause;
  END IF;
END $$;

-- Whether the steps of a workflow are being undone, and not all of them are: null if not; otherwise whether it is a job of its own.
CREATE OR REPLACE FUNCTION detent.undo_unfinished(p_job_id bigint) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT CASE WHEN w.undo_of IS NULL THEN 'own' ELSE 'other' END FROM detent.workflow w
           WHERE w.job_id = p_job_id AND w.undoing_since IS NOT NULL AND NOT EXISTS (
             SELECT 1 FROM detent.workflow_step s
              WHERE s.job_id = p_job_id AND s.generation = w.generation AND s.path = '~undone'));
END $$;

-- The steps of a workflow whose undo is still to be called, in the order of the calls.
CREATE OR REPLACE FUNCTION detent.undo_plan(w detent.workflow) RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN ARRAY(
    SELECT s.path FROM detent.workflow_step s
     WHERE s.job_id = coalesce(w.undo_of, w.job_id) AND s.generation = w.generation AND s.undo AND s.value IS NOT NULL
       AND s.kind <> 'scope' AND NOT EXISTS (
         SELECT 1 FROM detent.workflow_step u
          WHERE u.job_id IN (w.job_id, w.undo_of, w.undone_by) AND u.generation = w.generation AND u.path = s.path || '~undo')
     ORDER BY s.seq DESC);
END $$;

-- undo_start: enqueue a job that undoes the steps of one that has come to rest.
-- takes:   the job; id, nonce and metadata of the new one, and why
-- gives:   `made`, or `found` if there is one for this generation, with its id; `gone` if there is no such job; or why it was
--          refused (`rests`: it has not come to rest; `nothing`, `undo`, `undone`, `stopped`, `unknown`), with what was found
-- locks:   the job
-- refuses: jobs that have not come to rest, whose effect is unknown, or that have nothing to undo
CREATE OR REPLACE FUNCTION detent.undo_start_v1(
  p_job_id bigint, p_id bigint, p_nonce bigint, p_metadata text, p_cause text
) RETURNS TABLE (answer text, undo_id bigint, detail text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  j    detent.job := detent.job_lock(p_job_id);
  t    timestamptz := detent.clock();
  w    detent.workflow;
  plan text[];
BEGIN
  SELECT f.* INTO w FROM detent.workflow f WHERE f.job_id = p_job_id;
  plan := CASE WHEN w.job_id IS NOT NULL THEN detent.undo_plan(w) END;
  detail := j.state;
  undo_id := NULL;
  IF j.id IS NULL THEN
    answer := 'gone';
  ELSIF w.undone_by IS NOT NULL THEN
    answer := 'found';
    undo_id := w.undone_by;
  ELSIF w.undo_of IS NOT NULL THEN
    answer := 'undo';
    detail := w.undo_of::text;
  ELSIF j.state IN ('pending', 'running') THEN
    answer := 'rests';
    detail := CASE WHEN detent.is_parked(j, w.parked_attempt) THEN 'parked' ELSE j.state END;
  ELSIF w.undoing_since IS NOT NULL AND detent.undo_unfinished(p_job_id) IS NULL THEN
    answer := 'undone';
  ELSIF w.undoing_since IS NOT NULL AND j.state = 'quarantined' THEN
    answer := 'stopped';
    detail := plan[1];
  ELSIF (SELECT d.reason FROM detent.dead d WHERE d.job_id = p_job_id) = 'unknown' THEN
    answer := 'unknown';
  ELSIF coalesce(cardinality(plan), 0) = 0 THEN
    answer := 'nothing';
  ELSE
    answer := 'made';
    undo_id := p_id;
    INSERT INTO detent.job (id, tenant, task, queue, priority, due_at, payload, metadata, correlation_id, traceparent, nonce,
        created_at, attempts_max, idempotent, limit_key, cost)
      SELECT p_id, j.tenant, j.task, j.queue, j.priority, t, coalesce(w.payload, j.payload), p_metadata,
             coalesce(j.correlation_id, j.id::text), j.traceparent, p_nonce, t, j.attempts_max, j.idempotent, j.limit_key,
             j.cost;
    INSERT INTO detent.workflow (job_id, version, generation, root_id, depth, undoing_since, undo_cause, undo_of)
      VALUES (p_id, w.version, w.generation, p_id, 0, t, p_cause, p_job_id);
    PERFORM detent.jobs_date(t, ARRAY[p_id]);
    PERFORM detent.queue_enter((SELECT k FROM detent.job k WHERE k.id = p_id), t);
    UPDATE detent.workflow f SET undone_by = p_id WHERE f.job_id = p_job_id;
    PERFORM detent.wake_waiters(false);
  END IF;
  RETURN NEXT;
END $$;

-- step_settle: record what a person found out about a step, and let its workflow go on.
-- takes:   a job and a step; whether it has been done, with which value (of an undo: null); who, why
-- gives:   the state it was found in; why it was quarantined; whether it was settled; if not, the steps that can be
-- locks:   the job
-- refuses: jobs that are not quarantined, or have no step that was begun and not recorded, and no undo that has failed; other steps
CREATE OR REPLACE FUNCTION detent.step_settle_v1(
  p_job_id bigint, p_path text, p_done boolean, p_value text, p_actor text, p_reason text
) RETURNS TABLE (from_state text, dead_reason text, settled boolean, steps text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  j     detent.job := detent.job_lock(p_job_id);
  w     detent.workflow;
  n     timestamptz;
  flags record;
BEGIN
  IF j.id IS NULL THEN
    RETURN;
  END IF;
  SELECT f.* INTO w FROM detent.workflow f WHERE f.job_id = p_job_id;
  from_state := j.state;
  dead_reason := (SELECT d.reason FROM detent.dead d WHERE d.job_id = p_job_id);
  settled := false;
  IF j.state = 'quarantined' AND w.job_id IS NOT NULL THEN
    IF dead_reason <> 'undo failed' THEN
      steps := ARRAY(
        SELECT DISTINCT b.path FROM detent.workflow_step_begun b
         WHERE b.job_id = p_job_id AND b.generation = w.generation AND NOT EXISTS (
           SELECT 1 FROM detent.workflow_step s
            WHERE s.job_id = p_job_id AND s.generation = w.generation AND s.path = b.path)
         ORDER BY b.path LIMIT 100);
      steps := CASE WHEN cardinality(steps) > 0 OR dead_reason = 'unknown' THEN steps END;
    ELSE
      steps := (detent.undo_plan(w))[1 : 1];
    END IF;
    settled := coalesce(p_path = ANY (steps), false);
  END IF;
  IF NOT settled THEN
    RETURN NEXT;
    RETURN;
  END IF;
  n := detent.job_now(j, detent.clock());
  IF p_done THEN
    SELECT coalesce(bool_or(b.secret), false) AS secret, coalesce(bool_or(b.undo), false) AS undo INTO flags
      FROM detent.workflow_step_begun b
     WHERE dead_reason <> 'undo failed' AND b.job_id = p_job_id AND b.generation = w.generation AND b.path = p_path;
    INSERT INTO detent.workflow_step (job_id, generation, path, seq, kind, scope, attempt, beside, secret, undo, began_at,
        done_at, value)
      SELECT p_job_id, w.generation, CASE WHEN dead_reason = 'undo failed' THEN p_path || '~undo' ELSE p_path END,
             1 + max(s.seq), CASE WHEN dead_reason = 'undo failed' THEN 'undo' ELSE 'call' END,
             CASE WHEN strpos(p_path, '/') > 0 THEN regexp_replace(p_path, '/[^/]*$', '') ELSE '' END,
             0, dead_reason <> 'undo failed', flags.secret, flags.undo, n, n, coalesce(p_value, 'null')
        FROM (SELECT 0 AS seq UNION ALL
              SELECT x.seq FROM detent.workflow_step x
               WHERE x.job_id IN (p_job_id, w.undo_of) AND x.generation = w.generation) s;
  END IF;
  INSERT INTO detent.transition_log
      (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor, reason, metadata, correlation_id, at)
    VALUES (j.tenant, 'job', j.id::text, j.id, j.attempt, j.state, 'pending', 'settle', p_actor, p_reason,
            json_build_object('step', p_path, 'done', p_done)::text, j.correlation_id, n);
  PERFORM detent.transition_count(j, 'pending', n);
  PERFORM detent.job_unsettled(j, n);
  RETURN NEXT;
END $$;
