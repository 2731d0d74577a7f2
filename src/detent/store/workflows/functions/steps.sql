-- workflow_load: what is on record of a workflow, for the holder of an attempt.
-- takes:   a job and its attempt; the path to continue after (null: from the beginning), how many steps
-- gives:   one row `head` (or `lost`, with what was found instead of the holder); then steps in the order of their paths, without
--          those inside recorded scopes; and, from the beginning, steps that were begun and not recorded (`begun`).
--          Of the head, `signal_seq` is the job whose steps this one undoes, `beside` says that its own steps were undone, and
--          `fingerprint` has the seeds. If steps are being undone: all of them, and for a job that undoes another those of both
-- locks:   its wait rows, which it deletes
-- refuses: callers that are not the holder
CREATE OR REPLACE FUNCTION detent.workflow_load_v1(p_job_id bigint, p_attempt integer, p_after text, p_limit integer)
RETURNS TABLE (what text, generation integer, path text, seq integer, kind text, scope text, attempt integer,
               fingerprint text, beside boolean, secret boolean, undo boolean, began_at timestamptz, done_at timestamptz,
               value text, error text, signal_name text, signal_seq bigint, version integer, parks integer,
               depth integer, cancelled boolean, cause text, forked_from bigint, suspect boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_sort = off SET enable_bitmapscan = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t timestamptz := detent.clock();
  j detent.job;
  w detent.workflow;
BEGIN
  SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id;
  error := detent.holder_lost(j, p_attempt, t);
  what := CASE WHEN error IS NULL THEN 'head' ELSE 'lost' END;
  IF error IS NOT NULL THEN
    RETURN NEXT;
    RETURN;
  END IF;
  DELETE FROM detent.workflow_wait x WHERE x.job_id = p_job_id;
  SELECT f.* INTO w FROM detent.workflow f WHERE f.job_id = p_job_id;
  generation := coalesce(w.generation, 1);
  done_at := detent.job_now(j, t);
  value := w.payload;
  version := nullif(w.version, 0);
  parks := coalesce(w.parks, 0);
  depth := coalesce(w.depth, 0);
  cancelled := j.cancel_requested_at IS NOT NULL;
  undo := w.undoing_since IS NOT NULL;
  beside := w.undone_by IS NOT NULL OR undo AND EXISTS (
    SELECT 1 FROM detent.workflow_step s WHERE s.job_id = p_job_id AND s.generation = w.generation AND s.path = '~undone');
  signal_seq := w.undo_of;
  cause := w.undo_cause;
  forked_from := w.forked_from;
  fingerprint := w.seeds;
  suspect := EXISTS (SELECT 1 FROM detent.execution e WHERE e.job_id = p_job_id AND (e.outcome = 'crashed' OR e.suspect));
  RETURN NEXT;
  IF w.job_id IS NULL THEN
    RETURN;
  END IF;
  IF undo THEN
    RETURN QUERY
      SELECT 'step', s.generation, s.path, s.seq, s.kind, s.scope, s.attempt, s.fingerprint, s.beside, s.secret, s.undo,
             s.began_at, s.done_at, s.value, s.error, s.signal_name, s.signal_seq, NULL::integer, NULL::integer,
             NULL::integer, NULL::boolean, NULL::text, NULL::bigint, NULL::boolean
        FROM detent.steps_to_undo(p_job_id, w.undo_of, w.generation, coalesce(p_after, ''), p_limit) s;
  ELSE
    RETURN QUERY
      SELECT 'step', s.generation, s.path, s.seq, s.kind, s.scope, s.attempt, s.fingerprint, s.beside, s.secret, s.undo,
             s.began_at, s.done_at, s.value, s.error, s.signal_name, s.signal_seq, NULL::integer, NULL::integer,
             NULL::integer, NULL::boolean, NULL::text, NULL::bigint, NULL::boolean
        FROM detent.steps_outside_scopes(p_job_id, w.generation, coalesce(p_after, ''), p_limit) s;
  END IF;
  IF p_after IS NULL THEN
    RETURN QUERY
      SELECT 'begun', w.generation, b.path, count(*)::integer, NULL, NULL, min(b.attempt), NULL, NULL::boolean,
             NULL::boolean, NULL::boolean, NULL::timestamptz, NULL::timestamptz, NULL, NULL, NULL, NULL::bigint,
             NULL::integer, NULL::integer, NULL::integer, NULL::boolean, NULL::text, NULL::bigint, NULL::boolean
        FROM detent.workflow_step_begun b
       WHERE b.job_id = p_job_id AND b.generation = w.generation AND NOT EXISTS (
         SELECT 1 FROM detent.workflow_step s
          WHERE s.job_id = p_job_id AND s.generation = w.generation AND s.path = b.path)
       GROUP BY b.path ORDER BY b.path;
  END IF;
END $$;

-- workflow_load_many: the same for many workflows at once, from the first step of each.
-- takes:   jobs and attempts; how many steps of each
-- gives:   the rows of workflow_load, each with the place of its item
-- locks:   their wait rows, which it deletes
-- refuses: callers that are not the holder, item by item
CREATE OR REPLACE FUNCTION detent.workflow_load_many_v1(p_ids bigint[], p_attempts integer[], p_limit integer)
RETURNS TABLE (ord integer, what text, generation integer, path text, seq integer, kind text, scope text, attempt integer,
               fingerprint text, beside boolean, secret boolean, undo boolean, began_at timestamptz, done_at timestamptz,
               value text, error text, signal_name text, signal_seq bigint, version integer, parks integer,
               depth integer, cancelled boolean, cause text, forked_from bigint, suspect boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  FOR n IN 1 .. cardinality(p_ids) LOOP
    RETURN QUERY SELECT n, l.* FROM detent.workflow_load_v1(p_ids[n], p_attempts[n], NULL, p_limit) l;
  END LOOP;
END $$;

-- Steps in the order of their paths, without those inside recorded scopes. The path of a step begins with that of its scope and
-- a slash, so the steps of a scope follow one another and are passed over at once.
CREATE OR REPLACE FUNCTION detent.steps_outside_scopes(p_job_id bigint, p_generation integer, p_after text, p_limit integer)
RETURNS SETOF detent.workflow_step
LANGUAGE plpgsql STABLE AS $$
DECLARE
  place    text := p_after;
  names    text[];
  outside  text;
  inside   text;
  checked  text := '';
  given    integer := 0;
  s        detent.workflow_step;
BEGIN
  <<again>>
  LOOP
    inside := NULL;
    FOR s IN
      SELECT x.* FROM detent.workflow_step x
       WHERE x.job_id = p_job_id AND x.generation = p_generation AND x.path > place
       ORDER BY x.path
    LOOP
      IF s.scope <> checked THEN
        -- The outermost recorded scope that the step is in: of its scope, every part up to a slash. One look-up each: with a list of
        -- paths, PostgreSQL may read all steps of the workflow instead.
        names := string_to_array(s.scope, '/');
        FOR n IN 1 .. cardinality(names) LOOP
          outside := array_to_string(names[: n], '/');
          -- Only forward: a damaged row may name a scope that its path is not in.
          EXIT WHEN NOT starts_with(s.path, outside || '/');
          SELECT o.path INTO inside FROM detent.workflow_step o
           WHERE o.job_id = p_job_id AND o.generation = p_generation AND o.path = outside AND o.kind = 'scope';
          EXIT WHEN inside IS NOT NULL;
        END LOOP;
        checked := s.scope;
        IF inside IS NOT NULL THEN
          checked := '';
          EXIT;
        END IF;
      END IF;
      EXIT again WHEN given = p_limit;
      given := given + 1;
      RETURN NEXT s;
    END LOOP;
    EXIT WHEN inside IS NULL;
    place := inside || '/' || chr(1114111);  -- after every path inside it
  END LOOP;
END $$;

-- All steps of a workflow, and of the one that it undoes, in the order of their paths.
CREATE OR REPLACE FUNCTION detent.steps_to_undo(
  p_job_id bigint, p_undo_of bigint, p_generation integer, p_after text, p_limit integer
) RETURNS SETOF detent.workflow_step
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN QUERY
    SELECT u.* FROM (
      (SELECT s.* FROM detent.workflow_step s
        WHERE s.job_id = p_job_id AND s.generation = p_generation AND s.path > p_after ORDER BY s.path LIMIT p_limit)
      UNION ALL
      (SELECT s.* FROM detent.workflow_step s
        WHERE s.job_id = p_undo_of AND s.generation = p_generation AND s.path > p_after ORDER BY s.path LIMIT p_limit)) u
     ORDER BY u.path LIMIT p_limit;
END $$;

-- step_begin: record that steps are about to be called that must not be repeated blindly.
-- takes:   jobs, attempts, versions, generations and paths, by job; flags as step_record_one
-- gives:   one row per item: the first attempt that has begun the step and how many have, or what was found instead of the holder
-- locks:   new rows only
-- refuses: callers that are not the holder
CREATE OR REPLACE FUNCTION detent.step_begin_v1(
  p_ids bigint[], p_attempts integer[], p_versions integer[], p_generations integer[], p_paths text[],
  p_flags integer[] DEFAULT '{}'
) RETURNS TABLE (ord integer, first integer, tries integer, instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
  t    timestamptz := detent.clock();
  item record;
  j    detent.job;
BEGIN
  FOR item IN
    SELECT u.* FROM unnest(p_ids, p_attempts, p_versions, p_generations, p_paths, p_flags) WITH ORDINALITY
      AS u (id, attempt, version, generation, path, flags, ord) ORDER BY u.id, u.path, u.ord
  LOOP
    ord := item.ord;
    first := NULL;
    tries := NULL;
    SELECT k.* INTO j FROM detent.job k WHERE k.id = item.id;
    instead := detent.step_refused(j, item.attempt, t);
    IF instead IS NULL THEN
      PERFORM detent.workflow_begin(item.id, item.version, item.generation);
      INSERT INTO detent.workflow_step_begun (job_id, generation, path, attempt, begun_at, secret, undo)
        VALUES (item.id, item.generation, item.path, item.attempt, detent.job_now(j, t),
                coalesce(item.flags, 0) & 2 <> 0, coalesce(item.flags, 0) & 4 <> 0)
        ON CONFLICT ON CONSTRAINT workflow_step_begun_pkey DO NOTHING;
      SELECT min(b.attempt), count(*) INTO first, tries FROM detent.workflow_step_begun b
       WHERE b.job_id = item.id AND b.generation = item.generation AND b.path = item.path;
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;

-- step_record_one: record one step of a workflow that has begun, as most are, at the least cost.
-- takes:   the step; p_flags: 1 beside, 2 secret, 4 undo; how many microseconds it took
-- gives:   when it was recorded; null if it was not: step_record has the answer
-- locks:   the new row only. If a caller has just lost its lease, and its row gets in all the same, the next attempt takes it over
-- refuses: nothing
-- differs: SQLite needs no such function
CREATE OR REPLACE FUNCTION detent.step_record_one_v1(
  p_job_id bigint, p_attempt integer, p_generation integer, p_path text, p_seq integer, p_kind text, p_value text,
  p_ran_us bigint DEFAULT 0, p_scope text DEFAULT '', p_fingerprint text DEFAULT NULL, p_flags integer DEFAULT 0,
  p_error text DEFAULT NULL
) RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off AS $$
DECLARE
  t  timestamptz := detent.clock();
  at timestamptz;
BEGIN
  INSERT INTO detent.workflow_step (job_id, generation, path, seq, kind, scope, attempt, fingerprint, beside, secret, undo,
      began_at, done_at, value, error)
    SELECT p_job_id, p_generation, p_path, p_seq, p_kind, p_scope, p_attempt, p_fingerprint, p_flags & 1 <> 0,
           p_flags & 2 <> 0, p_flags & 4 <> 0,
           greatest(t, j.leased_at, j.started_at, j.cancel_requested_at) - p_ran_us * interval '1 microsecond',
           greatest(t, j.leased_at, j.started_at, j.cancel_requested_at), p_value, p_error
      FROM detent.job j
     WHERE j.id = p_job_id AND j.attempt = p_attempt AND j.state = 'running' AND j.committed_at IS NULL
       AND (SELECT l.expires_at FROM detent.lease l WHERE l.id = j.lease_id) > t
       AND EXISTS (SELECT 1 FROM detent.workflow w
                    WHERE w.job_id = p_job_id AND w.generation = p_generation AND w.version > 0)
    ON CONFLICT DO NOTHING
  RETURNING workflow_step.done_at INTO at;
  RETURN at;
END $$;

-- step_record: record steps.
-- takes:   one array per column, with a single element if all items have the same value; p_flags as step_record_one
-- gives:   a row 0 with the time; and a row for each item that was not recorded now, or at another time: the step on record, or
--          what was found instead of the holder. The ordinary answer is row 0 alone
-- locks:   new rows only. If a caller has just lost its lease, and its row gets in all the same, the next attempt takes it over
-- refuses: callers that are not the holder, a committed attempt
CREATE OR REPLACE FUNCTION detent.step_record_v1(
  p_ids bigint[], p_attempts integer[], p_versions integer[], p_generations integer[], p_paths text[], p_seqs integer[],
  p_kinds text[], p_values text[], p_ran_us bigint[], p_scopes text[], p_fingerprints text[], p_flags integer[],
  p_errors text[]
) RETURNS TABLE (ord integer, created boolean, kind text, value text, error text, done_at timestamptz, instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t       timestamptz := detent.clock();
  total   integer := cardinality(p_ids);
  made    integer := 0;
  is_even boolean := true;
  part    record;
  begun   integer;
  m_ids   bigint[] := '{}';
  m_gens  integer[] := '{}';
  m_paths text[] := '{}';
  m_tries integer[] := '{}';
BEGIN
  -- The second round is for workflows whose first step this is.
  FOR round IN 1 .. 2 LOOP
    WITH made AS (
      INSERT INTO detent.workflow_step (job_id, generation, path, seq, kind, scope, attempt, fingerprint, beside, secret, undo,
          began_at, done_at, value, error)
        SELECT u.id, w.generation, u.path, u.seq, coalesce(u.kind, p_kinds[1]), coalesce(u.scope, p_scopes[1]), j.attempt,
               u.fingerprint, coalesce(u.flags, p_flags[1]) & 1 <> 0, coalesce(u.flags, p_flags[1]) & 2 <> 0,
               coalesce(u.flags, p_flags[1]) & 4 <> 0, j.at - coalesce(u.ran_us, p_ran_us[1]) * interval '1 microsecond',
               j.at, u.value, u.error
          FROM unnest(p_ids, p_attempts, p_generations, p_paths, p_seqs, p_kinds, p_values, p_ran_us, p_scopes,
                      p_fingerprints, p_flags, p_errors) WITH ORDINALITY
            AS u (id, attempt, generation, path, seq, kind, value, ran_us, scope, fingerprint, flags, error, ord)
         -- OFFSET 0: each item looks for its own rows, whatever was known of the tables when the plan was made.
         CROSS JOIN LATERAL (SELECT k.attempt, k.lease_id, greatest(t, k.leased_at, k.started_at, k.cancel_requested_at) AS at
                               FROM detent.job k
                              WHERE k.id = u.id AND k.attempt = coalesce(u.attempt, p_attempts[1]) AND k.state = 'running'
                                AND k.committed_at IS NULL OFFSET 0) j
         CROSS JOIN LATERAL (SELECT f.generation FROM detent.workflow f
                              WHERE f.job_id = u.id AND f.generation = coalesce(u.generation, p_generations[1])
                                AND f.version > 0 OFFSET 0) w
         WHERE (SELECT l.expires_at FROM detent.lease l WHERE l.id = j.lease_id) > t
         ORDER BY u.id, u.path, u.ord
        ON CONFLICT DO NOTHING
      RETURNING job_id, generation, path, attempt, done_at
    )
    SELECT count(*), coalesce(bool_and(m.done_at = t), true), coalesce(array_agg(m.job_id), '{}') AS ids,
           coalesce(array_agg(m.generation), '{}') AS gens, coalesce(array_agg(m.path), '{}') AS paths,
           coalesce(array_agg(m.attempt), '{}') AS tries
      INTO part FROM made m;
    made := made + part.count;
    is_even := is_even AND part.coalesce;
    EXIT WHEN made = total;
    m_ids := m_ids || part.ids;
    m_gens := m_gens || part.gens;
    m_paths := m_paths || part.paths;
    m_tries := m_tries || part.tries;
    EXIT WHEN round = 2;
    begun := detent.workflows_begin(p_ids, p_attempts, p_versions, p_generations, t);
    EXIT WHEN begun = 0;
  END LOOP;
  ord := 0;
  done_at := t;
  RETURN NEXT;
  IF made = total AND is_even THEN
    RETURN;
  END IF;
  RETURN QUERY
    SELECT a.ord::integer, a.is_new, s.kind, s.value, s.error, s.done_at,
           CASE WHEN NOT a.is_new THEN coalesce(
             detent.step_refused(j, a.attempt, t),
             CASE WHEN w.generation <> a.generation
                  THEN 'generation ' || w.generation || ' is current, not ' || a.generation END,
             CASE WHEN s.job_id IS NULL THEN 'its lease has expired' END) END
      FROM (
        SELECT u.ord, u.id, u.path, coalesce(u.attempt, p_attempts[1]) AS attempt, g.generation,
               made = total OR (m.id IS NOT NULL
                 AND row_number() OVER (PARTITION BY u.id, g.generation, u.path, g.attempt ORDER BY u.ord) = 1) AS is_new
          FROM unnest(p_ids, p_attempts, p_generations, p_paths) WITH ORDINALITY AS u (id, attempt, generation, path, ord)
         CROSS JOIN LATERAL (
           SELECT coalesce(u.generation, p_generations[1]) AS generation, coalesce(u.attempt, p_attempts[1]) AS attempt) g
          LEFT JOIN unnest(m_ids, m_gens, m_paths, m_tries) AS m (id, generation, path, attempt)
            ON m.id = u.id AND m.generation = g.generation AND m.path = u.path AND m.attempt = g.attempt) a
      LEFT JOIN LATERAL (SELECT k.* FROM detent.job k WHERE k.id = a.id OFFSET 0) j ON true
      LEFT JOIN LATERAL (SELECT f.generation FROM detent.workflow f WHERE f.job_id = a.id OFFSET 0) w ON true
      LEFT JOIN LATERAL (SELECT x.* FROM detent.workflow_step x
                          WHERE x.job_id = a.id AND x.generation = a.generation AND x.path = a.path OFFSET 0) s ON true
     WHERE NOT a.is_new OR s.done_at IS DISTINCT FROM t
     ORDER BY a.ord;
END $$;

-- Why this caller may not add to the record of a workflow; null if it may.
CREATE OR REPLACE FUNCTION detent.step_refused(j detent.job, p_attempt integer, t timestamptz) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN coalesce(detent.holder_lost(j, p_attempt, t), CASE WHEN j.committed_at IS NOT NULL THEN 'it has committed' END);
END $$;

-- Record that a workflow has begun, unless that is on record; give its generation. It belongs to the tree of its parent.
CREATE OR REPLACE FUNCTION detent.workflow_begin(p_job_id bigint, p_version integer, p_generation integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  w detent.workflow;
BEGIN
  SELECT f.* INTO w FROM detent.workflow f WHERE f.job_id = p_job_id;
  IF NOT FOUND THEN
    INSERT INTO detent.workflow (job_id, version, generation, root_id, depth)
      SELECT j.id, p_version, p_generation, coalesce(p.root_id, j.parent_id, j.id),
             CASE WHEN j.parent_id IS NULL THEN 0 ELSE coalesce(p.depth, 0) + 1 END
        FROM detent.job j
        LEFT JOIN LATERAL (SELECT f.root_id, f.depth FROM detent.workflow f WHERE f.job_id = j.parent_id OFFSET 0) p ON true
       WHERE j.id = p_job_id
      ON CONFLICT (job_id) DO NOTHING;
    RETURN p_generation;
  ELSIF w.version = 0 AND p_version > 0 THEN
    UPDATE detent.workflow SET version = p_version WHERE job_id = p_job_id;
  END IF;
  RETURN w.generation;
END $$;

-- The same for many workflows at once, of which the callers may add to the record; one element in an array is for all. Gives how
-- many have begun now.
CREATE OR REPLACE FUNCTION detent.workflows_begin(
  p_ids bigint[], p_attempts integer[], p_versions integer[], p_generations integer[], t timestamptz
) RETURNS integer
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  made integer;
BEGIN
  WITH asked AS (
    SELECT DISTINCT ON (u.id) u.id, coalesce(u.version, p_versions[1]) AS version,
           coalesce(u.generation, p_generations[1]) AS generation, j.parent_id, w.version AS known
      FROM unnest(p_ids, p_attempts, p_versions, p_generations) WITH ORDINALITY AS u (id, attempt, version, generation, ord)
     CROSS JOIN LATERAL (SELECT k.parent_id FROM detent.job k
                          WHERE k.id = u.id AND detent.step_refused(k, coalesce(u.attempt, p_attempts[1]), t) IS NULL OFFSET 0) j
      LEFT JOIN LATERAL (SELECT f.version FROM detent.workflow f WHERE f.job_id = u.id OFFSET 0) w ON true
     WHERE coalesce(w.version, 0) = 0
     ORDER BY u.id, u.ord
  ), new AS (
    INSERT INTO detent.workflow (job_id, version, generation, root_id, depth)
      SELECT a.id, a.version, a.generation, coalesce(p.root_id, a.parent_id, a.id),
             CASE WHEN a.parent_id IS NULL THEN 0 ELSE coalesce(p.depth, 0) + 1 END
        FROM asked a
        LEFT JOIN LATERAL (SELECT f.root_id, f.depth FROM detent.workflow f WHERE f.job_id = a.parent_id OFFSET 0) p ON true
       WHERE a.known IS NULL
      ON CONFLICT (job_id) DO NOTHING
  ), old AS (
    UPDATE detent.workflow f SET version = a.version
      FROM asked a
     WHERE f.job_id = ANY (ARRAY(SELECT x.id FROM asked x WHERE x.known = 0)) AND f.job_id = a.id AND a.version > 0
  )
  SELECT count(*) INTO made FROM asked;
  RETURN made;
END $$;

-- A step as a caller sends it, with times that end now. Its columns are named one by one: the table of a later release may have more.
CREATE OR REPLACE FUNCTION detent.step_sent(
  p_job_id bigint, p_attempt integer, p_generation integer, p_path text, p_seq integer, p_kind text, p_value text,
  p_ran_us bigint, p_scope text, p_fingerprint text, p_flags integer, p_error text, t timestamptz
) RETURNS detent.workflow_step
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  step detent.workflow_step;
BEGIN
  step.job_id := p_job_id;
  step.generation := p_generation;
  step.path := p_path;
  step.seq := p_seq;
  step.kind := p_kind;
  step.scope := p_scope;
  step.attempt := p_attempt;
  step.fingerprint := p_fingerprint;
  step.beside := p_flags & 1 <> 0;
  step.secret := p_flags & 2 <> 0;
  step.undo := p_flags & 4 <> 0;
  step.began_at := t - p_ran_us * interval '1 microsecond';
  step.done_at := t;
  step.value := p_value;
  step.error := p_error;
  RETURN step;
END $$;

-- Record a step of a job that the caller has locked, unless it is on record; give the step on record, and a row of nulls if it is
-- not of the current generation.
CREATE OR REPLACE FUNCTION detent.step_put(p_step detent.workflow_step, p_version integer) RETURNS detent.workflow_step
LANGUAGE plpgsql AS $$
DECLARE
  known detent.workflow_step;
BEGIN
  IF detent.workflow_begin(p_step.job_id, p_version, p_step.generation) <> p_step.generation THEN
    RETURN NULL;
  END IF;
  INSERT INTO detent.workflow_step (job_id, generation, path, seq, kind, scope, attempt, fingerprint, beside, secret, undo,
      began_at, done_at, value, error, signal_name, signal_seq)
    VALUES (p_step.job_id, p_step.generation, p_step.path, p_step.seq, p_step.kind, p_step.scope, p_step.attempt,
            p_step.fingerprint, p_step.beside, p_step.secret, p_step.undo, p_step.began_at, p_step.done_at, p_step.value,
            p_step.error, p_step.signal_name, p_step.signal_seq)
    ON CONFLICT ON CONSTRAINT workflow_step_pkey DO NOTHING;
  IF FOUND THEN
    RETURN p_step;
  END IF;
  SELECT s.* INTO known FROM detent.workflow_step s
   WHERE s.job_id = p_step.job_id AND s.generation = p_step.generation AND s.path = p_step.path;
  RETURN known;
END $$;

-- Whether an attempt at a workflow has recorded anything but times.
CREATE OR REPLACE FUNCTION detent.workflow_progressed(p_job_id bigint, p_attempt integer) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (
    SELECT 1 FROM detent.workflow w
      JOIN detent.workflow_step s ON s.job_id = w.job_id AND s.generation = w.generation AND s.attempt = p_attempt
     WHERE w.job_id = p_job_id AND s.kind <> ALL ('{sleep,deadline,timeout,token}'::text[]));
END $$;

-- Whether an attempt at a workflow has recorded this step, and it is no time.
CREATE OR REPLACE FUNCTION detent.step_is_news(p_job_id bigint, p_attempt integer, p_path text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (
    SELECT 1 FROM detent.workflow w
      JOIN detent.workflow_step s ON s.job_id = w.job_id AND s.generation = w.generation AND s.path = p_path
     WHERE w.job_id = p_job_id AND s.attempt = p_attempt AND s.kind <> ALL ('{sleep,deadline,timeout}'::text[]));
END $$;
