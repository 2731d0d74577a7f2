-- workflow_rewind: let a workflow continue from an earlier step.
-- takes:   a job; the first step to repeat; whether transactions and steps that happen once may be repeated; who, why; the key of the
--          job, from which chance follows; what the record says about it; p_notify: always notify waiters
-- gives:   the state it was found in (null if there is no such job); why it was refused (its state if that is why), with the steps that
--          are the reason; or the new generation, how many steps were kept and repeated, and how many signals were put back
-- locks:   the job, with its ready or waiting row first
-- refuses: what is running or has succeeded, what is pending and is to be cancelled, and what copy_refused says
CREATE OR REPLACE FUNCTION detent.workflow_rewind_v1(
  p_job_id bigint, p_to text, p_force boolean, p_actor text, p_reason text, p_seed text, p_metadata text,
  p_notify boolean DEFAULT true
) RETURNS TABLE (from_state text, why text, names text[], generation integer, kept integer, repeated integer, signals integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  j     detent.job := detent.job_lock(p_job_id);
  n     timestamptz := detent.job_now(j, detent.clock());
  w     detent.workflow;
  start integer;
BEGIN
  from_state := j.state;
  SELECT f.* INTO w FROM detent.workflow f WHERE f.job_id = p_job_id;
  IF j.id IS NULL OR j.state <> 'pending' AND NOT detent.is_job_move('rewind', j.state, 'pending') THEN
    why := j.state;
    RETURN NEXT;
    RETURN;
  ELSIF j.state = 'pending' AND j.cancel_requested_at IS NOT NULL THEN
    -- The steps that the next generation repeats would never be undone.
    why := 'being cancelled';
    RETURN NEXT;
    RETURN;
  END IF;
  start := detent.step_start(p_job_id, w.generation, p_to);
  SELECT r.why, r.names INTO why, names FROM detent.copy_refused(w, start, p_force, true) r;
  IF why IS NOT NULL THEN
    RETURN NEXT;
    RETURN;
  END IF;
  generation := w.generation + 1;
  kept := detent.steps_copy(w, start, p_job_id, generation, false, '{}', '{}');
  repeated := (SELECT count(*) FROM detent.workflow_step s
                WHERE s.job_id = p_job_id AND s.generation = w.generation AND s.kind <> 'undo') - kept;
  signals := detent.signals_put_back(w, start, p_actor, p_reason, n);
  INSERT INTO detent.transition_log (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor, reason,
      metadata, correlation_id, at)
    VALUES (j.tenant, 'job', j.id::text, j.id, j.attempt, j.state, 'pending', 'rewind', p_actor, p_reason, p_metadata,
            j.correlation_id, n);
  DELETE FROM detent.workflow_wait x WHERE x.job_id = p_job_id;
  UPDATE detent.workflow f
     SET generation = workflow_rewind_v1.generation, parks = 0, undoing_since = NULL, undo_cause = NULL, undone_by = NULL,
         seeds = detent.seeds_of(w, p_seed, p_job_id, workflow_rewind_v1.generation)
   WHERE f.job_id = p_job_id;
  IF j.state = 'pending' THEN
    PERFORM detent.queue_leave(j);
    UPDATE detent.job k SET due_at = n WHERE k.id = p_job_id;
  ELSE
    PERFORM detent.transition_count(j, 'pending', n);
    DELETE FROM detent.dead d WHERE d.job_id = p_job_id;
    j.expires_at := CASE WHEN j.expires_at > n THEN j.expires_at END;
    UPDATE detent.job k
       SET state = 'pending', spared = k.attempt, due_at = n, result = NULL, error = NULL, finished_at = NULL,
           expires_at = j.expires_at, cancel_requested_at = NULL, cancel_requested_by = NULL, cancel_reason = NULL,
           cancel_undo = NULL
     WHERE k.id = p_job_id;
  END IF;
  j.due_at := n;
  PERFORM detent.queue_enter(j, n);
  PERFORM detent.wake_waiters(p_notify);
  RETURN NEXT;
END $$;

-- workflow_fork: give a new job, which was enqueued in the same transaction, the record of another one.
-- takes:   the other job and the new one; the first step that is not copied (null: all are); whether transactions and steps that
--          happen once may be repeated; who, why; the key of the other job, from which chance follows; what the record says about it;
--          paths and values of copies that differ; whether it has the arguments of the other job's current generation; p_notify: always
--          notify waiters
-- gives:   whether there is such a job; why it was refused, with the steps that are the reason; or how many steps were copied
-- locks:   the workflow of the other job, so that neither retention nor a new generation comes in between; the new job
-- refuses: what copy_refused and replacement_refused say
CREATE OR REPLACE FUNCTION detent.workflow_fork_v1(
  p_job_id bigint, p_new_id bigint, p_at text, p_force boolean, p_actor text, p_reason text, p_seed text, p_metadata text,
  p_paths text[], p_values text[], p_keeps_payload boolean DEFAULT true, p_notify boolean DEFAULT true
) RETURNS TABLE (is_there boolean, why text, names text[], steps integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  w     detent.workflow;
  j     detent.job;
  n     timestamptz;
  start integer;
BEGIN
  SELECT f.* INTO w FROM detent.workflow f WHERE f.job_id = p_job_id FOR SHARE;
  is_there := EXISTS (SELECT 1 FROM detent.job k WHERE k.id = p_job_id);
  start := CASE WHEN p_at IS NULL THEN 2147483647 ELSE detent.step_start(p_job_id, w.generation, p_at) END;
  SELECT r.why, r.names INTO why, names FROM detent.copy_refused(w, start, p_force, false) r;
  IF why IS NULL AND cardinality(p_paths) > 0 THEN
    SELECT r.why, r.names INTO why, names FROM detent.replacement_refused(w, start, p_paths) r;
  END IF;
  IF why IS NOT NULL OR NOT is_there THEN
    RETURN NEXT;
    RETURN;
  END IF;
  j := detent.job_lock(p_new_id);
  IF j.state IS DISTINCT FROM 'pending' OR j.attempt <> 0 THEN
    RAISE EXCEPTION 'DT041 job %: only a job that has not begun becomes a fork', p_new_id USING ERRCODE = 'DT041';
  END IF;
  n := detent.job_now(j, detent.clock());
  -- It leaves the lane of jobs that have not begun, and enters that of its version.
  PERFORM detent.queue_leave(j);
  steps := detent.steps_copy(w, start, p_new_id, 1, true, p_paths, p_values);
  INSERT INTO detent.workflow (job_id, version, root_id, depth, forked_from, payload, seeds)
    VALUES (p_new_id, w.version, p_new_id, 0, p_job_id, CASE WHEN p_keeps_payload THEN w.payload END,
            detent.seeds_of(w, p_seed, p_new_id, 1));
  INSERT INTO detent.workflow_signal (job_id, name, seq, payload, dedupe, actor, reason, sent_at)
    SELECT p_new_id, g.name, g.seq, g.payload, g.dedupe, g.actor, g.reason, g.sent_at
      FROM detent.workflow_step s
     CROSS JOIN LATERAL (
       SELECT x.* FROM detent.workflow_signal x
        WHERE x.job_id = p_job_id AND x.name = s.signal_name AND x.seq = s.signal_seq LIMIT 1) g
     WHERE s.job_id = p_new_id AND s.generation = 1 AND s.signal_seq IS NOT NULL;
  INSERT INTO detent.transition_log (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor, reason,
      metadata, correlation_id, at)
    VALUES (j.tenant, 'job', j.id::text, j.id, 0, 'pending', 'pending', 'fork', p_actor, p_reason, p_metadata, j.correlation_id, n);
  PERFORM detent.queue_enter(j, n);
  PERFORM detent.wake_waiters(p_notify);
  RETURN NEXT;
END $$;

-- Below, a row that belongs to another is found by LATERAL and LIMIT 1, or by a scalar subquery: so by its whole key, one by one. As a
-- join without statistics, all rows of a workflow would be read for each of them.

-- The number of the first record of a step, or of the steps of a scope; null if there is none.
CREATE OR REPLACE FUNCTION detent.step_start(p_job_id bigint, p_generation integer, p_path text) RETURNS integer
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT min(s.seq) FROM detent.workflow_step s
           WHERE s.job_id = p_job_id AND s.generation = p_generation
             AND (s.path = p_path OR s.path > p_path || '/' AND s.path < p_path || '0'));  -- a zero follows the slash
END $$;

-- The steps of a generation that stay if everything from this number on is repeated: those before it. What belongs to another step,
-- as the end of a wait does, stays with it: its path is that of the step, a tilde and a word. An undo belongs to nothing that stays.
CREATE OR REPLACE FUNCTION detent.steps_kept(p_job_id bigint, p_generation integer, p_before integer)
RETURNS SETOF detent.workflow_step
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN QUERY
    SELECT s.* FROM detent.workflow_step s
     WHERE s.job_id = p_job_id AND s.generation = p_generation AND s.seq < p_before AND s.kind <> 'undo'
       AND (s.path !~ '~[^~]' OR EXISTS (
         SELECT 1 FROM detent.workflow_step m
          WHERE m.job_id = p_job_id AND m.generation = p_generation AND m.path = regexp_replace(s.path, '~[^~]*$', '')
            AND m.seq < p_before));
END $$;

-- Why the record of a workflow is not divided before this number (null: no such step), and the steps that are the reason; nulls if it
-- may be. A fork leaves the children of the other job alone; a rewind would spawn others beside them.
CREATE OR REPLACE FUNCTION detent.copy_refused(
  w detent.workflow, p_before integer, p_force boolean, p_is_rewind boolean, OUT why text, OUT names text[]
)
LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF w.job_id IS NULL THEN
    why := 'nothing';
    RETURN;
  ELSIF w.undo_of IS NOT NULL THEN
    why := 'undo';
    RETURN;
  ELSIF p_is_rewind AND EXISTS (SELECT 1 FROM detent.job u WHERE u.id = w.undone_by AND u.state <> 'succeeded') THEN
    why := 'being undone';
    names := ARRAY[w.undone_by::text];
    RETURN;
  END IF;
  why := 'no step';
  IF p_before IS NULL THEN
    names := ARRAY(SELECT s.path FROM detent.workflow_step s
                    WHERE s.job_id = w.job_id AND s.generation = w.generation AND s.path !~ '~' ORDER BY s.seq DESC LIMIT 5);
    RETURN;
  END IF;
  why := 'undone';
  names := ARRAY(SELECT s.path FROM detent.workflow_step u
                  CROSS JOIN LATERAL (
                    SELECT x.path, x.seq FROM detent.workflow_step x
                     WHERE x.job_id = w.job_id AND x.generation = w.generation AND x.path = regexp_replace(u.path, '~undo$', '')
                     LIMIT 1) s
                  WHERE u.job_id = w.job_id AND u.generation = w.generation AND u.kind = 'undo' AND u.path <> '~undone'
                    AND s.seq < p_before
                  ORDER BY s.seq LIMIT 5);
  IF w.undone_by IS NOT NULL THEN
    names := ARRAY(SELECT s.path FROM detent.workflow_step s
                    WHERE s.job_id = w.job_id AND s.generation = w.generation AND s.seq < p_before AND s.undo
                    ORDER BY s.seq LIMIT 5);
  END IF;
  IF cardinality(names) > 0 THEN
    RETURN;
  END IF;
  -- A group belongs to its parent and generation: the copy of its step could not wait for it.
  why := 'spawned';
  names := ARRAY(SELECT s.path FROM detent.workflow_step s
                   LEFT JOIN LATERAL (
                     SELECT x.seq FROM detent.workflow_step x
                      WHERE x.job_id = w.job_id AND x.generation = w.generation AND x.path = s.path || '~join' LIMIT 1) e ON true
                  WHERE s.job_id = w.job_id AND s.generation = w.generation AND s.kind = 'spawn' AND s.seq < p_before
                    AND coalesce(e.seq, p_before) >= p_before
                    AND (e.seq IS NOT NULL OR EXISTS (
                      SELECT 1 FROM detent.child_group g
                       WHERE g.parent_id = w.job_id AND g.generation = w.generation AND g.path = s.path))
                  ORDER BY s.seq LIMIT 5);
  IF cardinality(names) > 0 THEN
    RETURN;
  END IF;
  why := 'living';
  IF p_is_rewind THEN
    names := ARRAY(SELECT g.path FROM detent.child_group g
                    WHERE g.parent_id = w.job_id AND g.generation = w.generation
                      AND coalesce((SELECT s.seq FROM detent.workflow_step s
                                     WHERE s.job_id = w.job_id AND s.generation = w.generation AND s.path = g.path),
                                   p_before) >= p_before
                      AND CASE WHEN g.closed THEN g.succeeded + g.failed + g.dead < g.total
                               ELSE EXISTS (SELECT 1 FROM detent.job c
                                             WHERE c.parent_id = w.job_id AND c.id >= g.first_id AND c.id < g.first_id + g.total
                                               AND c.finished_at IS NULL) END
                    ORDER BY g.path LIMIT 5);
    IF cardinality(names) > 0 THEN
      RETURN;
    END IF;
  END IF;
  why := 'force';
  IF NOT p_force THEN
    names := ARRAY(SELECT x.path FROM (
                     SELECT s.path, s.seq FROM detent.workflow_step s
                      WHERE s.job_id = w.job_id AND s.generation = w.generation AND s.kind = 'transact' AND s.seq >= p_before
                     UNION
                     SELECT b.path, coalesce(s.seq, 2147483647) FROM detent.workflow_step_begun b
                       LEFT JOIN LATERAL (
                         SELECT y.seq FROM detent.workflow_step y
                          WHERE y.job_id = w.job_id AND y.generation = w.generation AND y.path = b.path LIMIT 1) s ON true
                      WHERE b.job_id = w.job_id AND b.generation = w.generation
                        AND coalesce(s.seq, 2147483647) >= p_before) x
                    ORDER BY x.seq, x.path LIMIT 5);
    IF cardinality(names) > 0 THEN
      RETURN;
    END IF;
  END IF;
  why := NULL;
END $$;

-- Why these steps do not get other values in a fork, and which of them.
CREATE OR REPLACE FUNCTION detent.replacement_refused(
  w detent.workflow, p_before integer, p_paths text[], OUT why text, OUT names text[]
)
LANGUAGE plpgsql STABLE AS $$
BEGIN
  SELECT x.why, ARRAY[x.path] INTO why, names FROM (
    SELECT p.path, p.ord, CASE
             WHEN s.job_id IS NULL THEN 'not copied'
             WHEN s.kind NOT IN ('call', 'transact', 'scope', 'signal') OR s.path ~ '~' THEN 'no value'
             WHEN EXISTS (SELECT 1 FROM detent.workflow_step o
                           WHERE o.job_id = w.job_id AND o.generation = w.generation AND o.kind = 'scope' AND o.seq < p_before
                             AND starts_with(p.path, o.path || '/')) THEN 'in scope' END AS why
      FROM unnest(p_paths) WITH ORDINALITY AS p (path, ord)
      LEFT JOIN detent.workflow_step s
        ON s.job_id = w.job_id AND s.generation = w.generation AND s.path = p.path AND s.seq < p_before) x
   WHERE x.why IS NOT NULL ORDER BY x.ord LIMIT 1;
END $$;

-- Copy the steps of a workflow before this number; give how many. What a fork has copied is for the other job to undo.
CREATE OR REPLACE FUNCTION detent.steps_copy(
  w detent.workflow, p_before integer, p_to bigint, p_generation integer, p_is_fork boolean, p_paths text[], p_values text[]
) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  copied integer;
BEGIN
  INSERT INTO detent.workflow_step (job_id, generation, path, seq, kind, scope, attempt, fingerprint, beside, secret, undo,
      began_at, done_at, value, error, signal_name, signal_seq)
    SELECT p_to, p_generation, s.path, s.seq, s.kind, s.scope, 0, s.fingerprint, s.beside, s.secret, s.undo AND NOT p_is_fork,
           s.began_at, s.done_at, coalesce(r.value, s.value), CASE WHEN r.value IS NULL THEN s.error END, s.signal_name, s.signal_seq
      FROM detent.steps_kept(w.job_id, w.generation, p_before) s
      LEFT JOIN unnest(p_paths, p_values) AS r (path, value) ON r.path = s.path;
  GET DIAGNOSTICS copied = ROW_COUNT;
  -- So that a copy of a step that happens once is still one.
  INSERT INTO detent.workflow_step_begun (job_id, generation, path, attempt, begun_at, secret, undo)
    SELECT p_to, p_generation, b.path, 0, min(b.begun_at), bool_or(b.secret), bool_or(b.undo) AND NOT p_is_fork
      FROM detent.workflow_step_begun b
     WHERE b.job_id = w.job_id AND b.generation = w.generation
       AND (SELECT s.seq FROM detent.workflow_step s
             WHERE s.job_id = p_to AND s.generation = p_generation AND s.path = b.path) IS NOT NULL
     GROUP BY b.path;
  RETURN copied;
END $$;

-- From what chance follows while the copies of a workflow are replayed: one line more for the record of which they are copies, with the
-- number after the last of them.
CREATE OR REPLACE FUNCTION detent.seeds_of(w detent.workflow, p_seed text, p_to bigint, p_generation integer) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN concat(w.seeds, (SELECT coalesce(max(s.seq), 0) + 1 FROM detent.workflow_step s
                           WHERE s.job_id = p_to AND s.generation = p_generation), ' ', p_seed, '/', w.generation, chr(10));
END $$;

-- Put the signals that were taken by steps from this number on into the mailbox again, in their order; give how many.
CREATE OR REPLACE FUNCTION detent.signals_put_back(
  w detent.workflow, p_before integer, p_actor text, p_reason text, p_at timestamptz
) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  total integer := (SELECT count(*) FROM detent.workflow_step s
                     WHERE s.job_id = w.job_id AND s.generation = w.generation AND s.seq >= p_before AND s.signal_seq IS NOT NULL);
  first bigint;
BEGIN
  IF total > 0 THEN
    first := detent.ids_reserve_v1(total);
    INSERT INTO detent.workflow_signal (job_id, name, seq, payload, actor, reason, sent_at)
      SELECT w.job_id, g.name, first + row_number() OVER (ORDER BY g.seq) - 1, g.payload, p_actor, p_reason, p_at
        FROM detent.workflow_step s
       CROSS JOIN LATERAL (
         SELECT x.* FROM detent.workflow_signal x
          WHERE x.job_id = w.job_id AND x.name = s.signal_name AND x.seq = s.signal_seq LIMIT 1) g
       WHERE s.job_id = w.job_id AND s.generation = w.generation AND s.seq >= p_before AND s.signal_seq IS NOT NULL;
  END IF;
  RETURN total;
END $$;
