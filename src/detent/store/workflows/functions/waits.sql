-- wait_look: look whether waits have ended.
-- takes:   jobs (in order) and attempts; whether the wait chooses; when it ends, or after how many microseconds; how many things it
--          is for, and how many steps come first; 1 if it has an outcome, plus 2 if a step holds its end. Then those things, one after
--          the other; and the steps of each wait, its outcome and the step that holds its end, as step_record takes them
-- gives:   one row per item: `arrived` with kind, value and time; `again` with what is on record; `pending` until a time; or what was
--          found instead of the holder
-- locks:   the jobs, by id
-- refuses: callers that are not the holder, a committed attempt
CREATE OR REPLACE FUNCTION detent.wait_look_v1(
  p_ids bigint[], p_attempts integer[], p_chooses boolean[], p_untils timestamptz[], p_lasts bigint[], p_ons integer[],
  p_counts integer[], p_has integer[], p_on_kinds text[], p_on_names text[], p_on_settled boolean[],
  p_versions integer[], p_generations integer[], p_paths text[], p_seqs integer[], p_kinds text[], p_values text[],
  p_ran_us bigint[], p_scopes text[], p_fingerprints text[], p_flags integer[], p_errors text[]
) RETURNS TABLE (ord integer, answer text, n integer, kind text, value text, at timestamptz, instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t       timestamptz := detent.clock();
  steps   detent.workflow_step[] := ARRAY(
    SELECT detent.step_sent(0, 0, u.generation, u.path, u.seq, u.kind, u.value, u.ran_us, u.scope, u.fingerprint, u.flags,
                            u.error, t)
      FROM unnest(p_generations, p_paths, p_seqs, p_kinds, p_scopes, p_fingerprints, p_flags, p_ran_us, p_values,
                  p_errors) WITH ORDINALITY
        AS u (generation, path, seq, kind, scope, fingerprint, flags, ran_us, value, error, ord) ORDER BY u.ord);
  last_on   integer := 0;
  last_step integer := 0;
  first_on  integer;
  outcome   detent.workflow_step;
  holds     detent.workflow_step;
  known     detent.workflow_step;
  step      detent.workflow_step;
  version   integer;
  now_at    timestamptz;
  until_at  timestamptz;
  arrival   record;
  j         detent.job;
BEGIN
  <<items>>
  FOR i IN 1 .. cardinality(p_ids) LOOP
    ord := i;
    answer := NULL;
    n := NULL;
    kind := NULL;
    value := NULL;
    at := NULL;
    SELECT k.* INTO j FROM detent.job k WHERE k.id = p_ids[i] FOR UPDATE;
    instead := detent.step_refused(j, p_attempts[i], t);
    now_at := CASE WHEN instead IS NULL THEN detent.job_now(j, t) END;
    version := p_versions[last_step + 1];
    FOR k IN last_step + 1 .. last_step + p_counts[i] LOOP
      IF instead IS NULL THEN
        step := detent.step_put(detent.step_of(steps[k], j, now_at, t), version);
        IF step.job_id IS NULL THEN
          instead := 'generation ' || p_generations[k] || ' is not current';
        END IF;
      END IF;
    END LOOP;
    last_step := last_step + p_counts[i];
    outcome := NULL;
    holds := NULL;
    IF p_has[i] & 1 <> 0 THEN
      last_step := last_step + 1;
      outcome := detent.step_of(steps[last_step], j, now_at, t);
    END IF;
    IF p_has[i] & 2 <> 0 THEN
      last_step := last_step + 1;
      holds := detent.step_of(steps[last_step], j, now_at, t);
    END IF;
    first_on := last_on + 1;
    last_on := last_on + p_ons[i];
    IF instead IS NOT NULL THEN
      RETURN NEXT;
      CONTINUE;
    END IF;
    IF outcome.path IS NOT NULL THEN
      SELECT s.* INTO known FROM detent.workflow_step s
       WHERE s.job_id = j.id AND s.generation = outcome.generation AND s.path = outcome.path;
      IF FOUND THEN
        answer := 'again';
        kind := known.kind;
        value := known.value;
        at := known.done_at;
        RETURN NEXT;
        CONTINUE;
      END IF;
    END IF;
    SELECT a.* INTO arrival FROM detent.wait_arrival(
      j.id, p_on_kinds[first_on : last_on], p_on_names[first_on : last_on], p_on_settled[first_on : last_on]) a;
    IF arrival.n IS NOT NULL THEN
      answer := 'arrived';
      n := arrival.n;
      kind := CASE p_on_kinds[first_on + n] WHEN 'signal' THEN 'signal' ELSE 'join' END;
      value := arrival.value;
      at := greatest(now_at, arrival.sent_at);  -- the clock may have been set back
      IF outcome.path IS NOT NULL THEN
        outcome.done_at := greatest(outcome.done_at, at);
        IF p_chooses[i] THEN
          kind := 'choice';
          value := '{"n":' || n || ',"value":' || value || '}';
        END IF;
        IF arrival.seq IS NOT NULL THEN
          outcome.signal_name := p_on_names[first_on + n];
          outcome.signal_seq := arrival.seq;
        END IF;
      END IF;
    ELSE
      until_at := coalesce(p_untils[i], now_at + p_lasts[i] * interval '1 microsecond');
      until_at := CASE WHEN until_at IS NOT NULL THEN least(until_at, detent.never()) END;
      -- The time of a sleep is always on record; the end of another wait, if the wait lasts.
      IF holds.path IS NOT NULL AND until_at IS NOT NULL AND (p_ons[i] = 0 OR until_at > now_at) THEN
        holds.value := detent.time_text(until_at);
        holds.error := NULL;
        step := detent.step_put(holds, version);
        IF step.job_id IS NULL THEN
          instead := 'generation ' || holds.generation || ' is not current';
          RETURN NEXT;
          CONTINUE;
        END IF;
        IF step.value IS NOT NULL THEN
          until_at := btrim(step.value, '"')::timestamptz;
        END IF;
      END IF;
      IF until_at IS NULL OR until_at > now_at THEN
        answer := 'pending';
        at := until_at;
        RETURN NEXT;
        CONTINUE;
      END IF;
      answer := 'arrived';
      kind := CASE WHEN p_ons[i] = 0 AND outcome.path IS NULL THEN 'sleep' ELSE 'timeout' END;
      value := CASE kind WHEN 'sleep' THEN detent.time_text(until_at) ELSE 'null' END;
      at := now_at;
      IF outcome.path IS NOT NULL AND p_chooses[i] THEN
        kind := 'choice';
        value := '{"n":null,"value":null}';
      END IF;
    END IF;
    IF outcome.path IS NOT NULL THEN
      outcome.kind := kind;
      outcome.value := value;
      outcome.error := NULL;
      step := detent.step_put(outcome, version);
      IF step.job_id IS NULL THEN
        answer := NULL;
        instead := 'generation ' || outcome.generation || ' is not current';
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;

-- A step as it is to be recorded now, of a job that the caller holds.
CREATE OR REPLACE FUNCTION detent.step_of(p_step detent.workflow_step, j detent.job, p_at timestamptz, t timestamptz)
RETURNS detent.workflow_step
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  p_step.job_id := j.id;
  p_step.attempt := j.attempt;
  p_step.began_at := p_step.began_at + (p_at - t);
  p_step.done_at := p_at;
  RETURN p_step;
END $$;

-- The due time of a job that is parked without a time limit.
CREATE OR REPLACE FUNCTION detent.never() RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$
  SELECT '9999-01-01 00:00:00+00'::timestamptz
$$;

-- A time as the value of a step, with the quotes.
CREATE OR REPLACE FUNCTION detent.time_text(p_at timestamptz) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN '"' || to_char(p_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') || '+00:00"';
END $$;

-- The first of these things that has arrived for a workflow: its place (from 0) and value, and the number and time of a signal.
CREATE OR REPLACE FUNCTION detent.wait_arrival(
  p_job_id bigint, p_kinds text[], p_names text[], p_settled boolean[], OUT n integer, OUT value text, OUT seq bigint,
  OUT sent_at timestamptz
)
LANGUAGE plpgsql STABLE AS $$
BEGIN
  FOR i IN 1 .. coalesce(cardinality(p_kinds), 0) LOOP
    IF p_kinds[i] = 'signal' THEN
      SELECT g.seq, g.payload, g.sent_at INTO seq, value, sent_at
        FROM (SELECT x.seq FROM detent.workflow_unread x
               WHERE x.job_id = p_job_id AND x.name = p_names[i] ORDER BY x.seq LIMIT 1) u
       CROSS JOIN LATERAL (
         SELECT x.seq, x.payload, x.sent_at FROM detent.workflow_signal x
          WHERE x.job_id = p_job_id AND x.name = p_names[i] AND x.seq = u.seq) g;
    ELSE
      SELECT '{"succeeded":' || g.succeeded || ',"failed":' || g.failed || ',"dead":' || g.dead || '}' INTO value
        FROM detent.child_group g JOIN detent.workflow w ON w.job_id = g.parent_id AND w.generation = g.generation
       WHERE g.parent_id = p_job_id AND g.path = p_names[i] AND g.closed
         AND g.succeeded + g.failed + CASE WHEN p_settled[i] THEN 0 ELSE g.dead END = g.total;
    END IF;
    IF value IS NOT NULL THEN
      n := i - 1;
      RETURN;
    END IF;
  END LOOP;
END $$;

-- workflow_park: end attempts whose functions wait.
-- takes:   jobs (in order) and attempts; version and generation of the workflow, in case nothing was recorded yet; when the wait ends
--          (null: never); what it is for, for people; how many microseconds after the claim the function was called; how many things
--          each waits for; then those things, one after the other; the worker's name; whether the workflow has steps to undo; the
--          path of a step that the attempt has recorded (null: none but times; empty: not known)
-- gives:   a row for each item that was refused, with what was found; or with `cancel`, if a cancel was requested and there are
--          steps to undo: then nothing is changed
-- locks:   the jobs, by id. What has arrived is read under the lock, so no signal is missed: whoever sends one either had the lock
--          before, or finds the job locked and leaves a wake request
-- refuses: callers that are not the holder, a committed attempt
CREATE OR REPLACE FUNCTION detent.workflow_park_v1(
  p_ids bigint[], p_attempts integer[], p_versions integer[], p_generations integer[], p_untils timestamptz[],
  p_parked_fors text[], p_begun bigint[], p_ons integer[], p_on_kinds text[], p_on_names text[], p_on_settled boolean[],
  p_worker text, p_undoes boolean[], p_news text[]
) RETURNS TABLE (ord integer, instead text, cancel boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t         timestamptz := detent.clock();
  last_on   integer := 0;
  first_on  integer;
  goes_back boolean := false;
  until_at  timestamptz;
  due       timestamptz;
  j         detent.job;
BEGIN
  -- All of them before what follows the first one is locked: a cancel may have been requested, and then it ends.
  PERFORM 1 FROM detent.job k WHERE k.id = ANY (p_ids) ORDER BY k.id FOR UPDATE;
  FOR i IN 1 .. cardinality(p_ids) LOOP
    ord := i;
    first_on := last_on + 1;
    last_on := last_on + p_ons[i];
    SELECT k.* INTO j FROM detent.job k WHERE k.id = p_ids[i];
    instead := detent.step_refused(j, p_attempts[i], t);
    IF instead IS NOT NULL THEN
      IF NOT EXISTS (SELECT 1 FROM detent.execution e
                      WHERE e.job_id = p_ids[i] AND e.attempt = p_attempts[i] AND e.outcome = 'parked') THEN
        cancel := false;
        RETURN NEXT;
      END IF;
      CONTINUE;
    END IF;
    IF p_undoes[i] AND j.cancel_requested_at IS NOT NULL THEN
      cancel := true;
      RETURN NEXT;
      CONTINUE;
    END IF;
    IF p_begun[i] IS NOT NULL THEN
      j.started_at := greatest(j.leased_at, least(
        j.started_at, detent.job_now(j, t), j.leased_at + p_begun[i] * interval '1 microsecond'));
    END IF;
    PERFORM detent.workflow_begin(j.id, p_versions[i], p_generations[i]);
    until_at := CASE WHEN p_untils[i] IS NOT NULL THEN least(p_untils[i], detent.never()) END;
    due := CASE WHEN (SELECT a.n FROM detent.wait_arrival(j.id, p_on_kinds[first_on : last_on], p_on_names[first_on : last_on],
                                                          p_on_settled[first_on : last_on]) a) IS NOT NULL
                THEN detent.job_now(j, t) ELSE coalesce(until_at, detent.never()) END;
    IF detent.attempt_park(j, p_worker, due, p_parked_fors[i], p_news[i], t) THEN
      goes_back := goes_back OR due <= detent.job_now(j, t);
      INSERT INTO detent.workflow_wait (job_id, n, kind, name, settled, due_at, tenant)
        SELECT j.id, u.ord - 1, u.kind, u.name, u.settled, until_at, j.tenant
          FROM unnest(p_on_kinds[first_on : last_on], p_on_names[first_on : last_on], p_on_settled[first_on : last_on])
            WITH ORDINALITY AS u (kind, name, settled, ord)
        UNION ALL
        SELECT j.id, 0, 'time', NULL, false, until_at, j.tenant WHERE p_ons[i] = 0;
    END IF;
  END LOOP;
  IF goes_back THEN
    PERFORM detent.wake_waiters(false);
  END IF;
END $$;

-- workflow_continue: begin the next generation of a workflow.
-- takes:   a job and its attempt, the arguments of the next generation, the worker's name
-- gives:   what was found instead of the holder; null if the attempt has ended
-- locks:   the job
-- refuses: callers that are not the holder, a committed attempt
CREATE OR REPLACE FUNCTION detent.workflow_continue_v1(p_job_id bigint, p_attempt integer, p_payload text, p_worker text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t       timestamptz := detent.clock();
  instead text;
  j       detent.job;
BEGIN
  SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id FOR UPDATE;
  instead := detent.step_refused(j, p_attempt, t);
  IF instead IS NOT NULL THEN
    RETURN CASE WHEN NOT EXISTS (SELECT 1 FROM detent.execution e
                                  WHERE e.job_id = p_job_id AND e.attempt = p_attempt AND e.outcome = 'parked')
                THEN instead END;
  END IF;
  PERFORM detent.workflow_begin(p_job_id, 0, 1);
  IF detent.attempt_park(j, p_worker, detent.job_now(j, t), '', '', t) THEN
    UPDATE detent.workflow w SET generation = w.generation + 1, payload = p_payload, undoing_since = NULL, undo_cause = NULL,
           undone_by = NULL, seeds = NULL
     WHERE w.job_id = p_job_id;
    PERFORM detent.wake_waiters(false);
  END IF;
  RETURN NULL;
END $$;

-- End the attempt of a job, which is locked, as parked, and delete its wait rows. Gives whether it is pending: a cancel may have been
-- requested. If the holder has recorded nothing new (no news), it says so, and its steps are not looked through; if it has, one step
-- is proof. They are looked through only if that step is of an earlier attempt.
CREATE OR REPLACE FUNCTION detent.attempt_park(
  j detent.job, p_worker text, p_due_at timestamptz, p_parked_for text, p_news text, t timestamptz
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  progressed boolean := p_news IS NOT NULL
    AND (detent.step_is_news(j.id, j.attempt, p_news) OR detent.workflow_progressed(j.id, j.attempt));
  ended      record;
BEGIN
  IF progressed THEN
    j.spared := greatest(j.spared, j.attempt - 1);
  END IF;
  SELECT a.outcome, a.state INTO ended
    FROM detent.attempt_abort(j, p_worker, 'parked', NULL, 0, false, t, false, p_due_at) a;
  DELETE FROM detent.workflow_wait x WHERE x.job_id = j.id;
  IF ended.outcome <> 'parked' OR ended.state <> 'pending' THEN
    RETURN false;
  END IF;
  UPDATE detent.workflow w
     SET parked_attempt = j.attempt, parked_at = detent.job_now(j, t), parked_for = p_parked_for,
         parks = CASE WHEN progressed THEN 0 ELSE w.parks + 1 END
   WHERE w.job_id = j.id;
  RETURN true;
END $$;

-- workflow_wake: carry out wake requests.
-- takes:   how many at most
-- gives:   how many were carried out
-- locks:   the requests; of each job its waiting row and the job. Whatever others hold is left for the next call
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.workflow_wake_v1(p_limit integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t      timestamptz := detent.clock();
  item   record;
  answer text;
  woken  boolean := false;
  done   bigint[] := '{}';
BEGIN
  FOR item IN SELECT r.n, r.job_id FROM detent.wake_request r ORDER BY r.n LIMIT p_limit FOR UPDATE SKIP LOCKED LOOP
    answer := detent.workflow_wake_up(item.job_id, t);
    woken := woken OR answer = 'woken';
    IF answer <> 'locked' THEN
      done := done || item.n;
    END IF;
  END LOOP;
  DELETE FROM detent.wake_request r WHERE r.n = ANY (done);
  IF woken THEN
    PERFORM detent.wake_waiters(false);
  END IF;
  RETURN cardinality(done);
END $$;

-- Make a parked workflow due now if something has arrived that it waits for: `woken`. `locked`: others hold it, so its caller
-- leaves a request. It never waits for a lock, so it may be called whatever else is locked.
CREATE OR REPLACE FUNCTION detent.workflow_wake_up(p_job_id bigint, t timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  q detent.waiting;
  j detent.job;
BEGIN
  SELECT w.* INTO q FROM detent.waiting w WHERE w.job_id = p_job_id FOR UPDATE SKIP LOCKED;
  SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id FOR UPDATE SKIP LOCKED;
  IF j.id IS NULL THEN
    RETURN CASE WHEN EXISTS (SELECT 1 FROM detent.job k WHERE k.id = p_job_id) THEN 'locked' ELSE 'gone' END;
  ELSIF j.state <> 'pending' THEN
    RETURN 'not parked';
  ELSIF q.job_id IS NULL THEN
    -- It is ready; or its waiting row is held by others, or was not there yet.
    RETURN CASE WHEN EXISTS (SELECT 1 FROM detent.waiting w WHERE w.job_id = p_job_id) THEN 'locked' ELSE 'not parked' END;
  ELSIF q.limit_key IS NOT NULL
     OR NOT EXISTS (SELECT 1 FROM detent.workflow f WHERE f.job_id = p_job_id AND f.parked_attempt = j.ended)
     OR (SELECT a.n FROM (SELECT array_agg(x.kind ORDER BY x.n) AS kinds, array_agg(x.name ORDER BY x.n) AS names,
                                 array_agg(x.settled ORDER BY x.n) AS settled
                            FROM detent.workflow_wait x WHERE x.job_id = p_job_id AND x.kind <> 'time') w
           CROSS JOIN LATERAL detent.wait_arrival(p_job_id, w.kinds, w.names, w.settled) a) IS NULL THEN
    RETURN 'not parked';
  END IF;
  j.due_at := detent.job_now(j, t);
  DELETE FROM detent.waiting w WHERE w.job_id = p_job_id;
  INSERT INTO detent.ready (lane_id, ready_at, job_id, holds_key, expires_at)
    VALUES (q.lane_id, j.due_at, p_job_id, q.holds_key, q.expires_at);
  UPDATE detent.job k SET due_at = j.due_at WHERE k.id = p_job_id;
  RETURN 'woken';
END $$;
