-- job_start: put attempts in progress on record.
-- takes:   jobs and attempts
-- gives:   a row for each item that was refused, with what was found
-- locks:   the jobs that had not started
-- refuses: callers that are not the holder
CREATE OR REPLACE FUNCTION detent.job_start_v1(p_ids bigint[], p_attempts integer[])
RETURNS TABLE (ord integer, instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t    timestamptz := detent.clock();
  part record;
BEGIN
  FOR part IN SELECT u.attempt, array_agg(u.id) AS ids FROM unnest(p_ids, p_attempts) AS u (id, attempt) GROUP BY u.attempt
  LOOP
    UPDATE detent.job j
       SET started_at = greatest(t, j.created_at, j.leased_at, j.cancel_requested_at)
     WHERE j.id = ANY (part.ids) AND j.attempt = part.attempt AND j.state = 'running' AND j.started_at IS NULL
       AND (SELECT l.expires_at FROM detent.lease l WHERE l.id = j.lease_id) > t;
  END LOOP;
  RETURN QUERY
    SELECT u.ord::integer, detent.holder_lost(j, u.attempt, t)
      FROM unnest(p_ids, p_attempts) WITH ORDINALITY AS u (id, attempt, ord)
      LEFT JOIN LATERAL (SELECT k.* FROM detent.job k WHERE k.id = u.id) j ON true
     WHERE detent.holder_lost(j, u.attempt, t) IS NOT NULL;
END $$;

-- effect_begin: record that an attempt is about to act outside of this database, and who can tell afterwards whether it has.
-- takes:   job, attempt, `probe` or `marker`
-- gives:   what was found instead of the holder, or the attempt that has committed; else the job's nonce, which with its
--          id tells it from every job of every other database
-- locks:   the job
-- refuses: callers that are not the holder, a committed job
CREATE OR REPLACE FUNCTION detent.effect_begin_v2(p_job_id bigint, p_attempt integer, p_evidence text)
RETURNS TABLE (instead text, committed_attempt integer, nonce bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := detent.clock();
  j detent.job;
BEGIN
  SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id FOR UPDATE;
  IF j.committed_at IS NOT NULL THEN
    committed_attempt := j.attempt;
  ELSE
    committed_attempt := detent.committed_before(p_job_id);
  END IF;
  IF committed_attempt IS NULL THEN
    instead := detent.holder_lost(j, p_attempt, t);
  END IF;
  IF instead IS NULL AND committed_attempt IS NULL THEN
    nonce := j.nonce;
    IF j.started_at IS NULL OR j.effect_evidence IS DISTINCT FROM p_evidence THEN
      UPDATE detent.job k
         SET started_at = coalesce(k.started_at, detent.job_now(j, t)), effect_evidence = p_evidence
       WHERE k.id = p_job_id;
    END IF;
  END IF;
  RETURN NEXT;
END $$;

-- lease_renew: extend leases, put what has begun in progress, and tell what is to be stopped.
-- takes:   leases, seconds, the jobs under them whose functions were called, and how many microseconds after the claim
-- gives:   one row for each lease that is still there, with the jobs that are to be cancelled and their attempts
-- locks:   the lease rows, by id; of the jobs only those that no other session holds
-- refuses: nothing: a lease that was reaped is simply not among the rows
CREATE OR REPLACE FUNCTION detent.lease_renew_v3(
  p_lease_ids bigint[], p_lease double precision, p_begun bigint[], p_begun_after bigint[]
) RETURNS TABLE (lease_id bigint, cancel_requested bigint[], cancel_attempts integer[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t    timestamptz := detent.clock();
  held bigint[];
  jobs bigint[];
BEGIN
  PERFORM 1 FROM detent.lease l WHERE l.id = ANY (p_lease_ids) ORDER BY l.id FOR UPDATE;
  WITH renewed AS (
    UPDATE detent.lease SET expires_at = t + make_interval(secs => p_lease) WHERE id = ANY (p_lease_ids)
    RETURNING id, job_ids
  )
  SELECT (SELECT array_agg(r.id) FROM renewed r),
         (SELECT array_agg(u.id) FROM renewed r CROSS JOIN LATERAL unnest(r.job_ids) AS u (id))
    INTO held, jobs;
  IF cardinality(p_begun) > 0 THEN
    UPDATE detent.job k
       SET started_at = greatest(k.leased_at, least(
             greatest(t, k.created_at, k.cancel_requested_at), k.leased_at + u.after * interval '1 microsecond'))
      FROM unnest(p_begun, p_begun_after) AS u (id, after)
     WHERE k.id = u.id AND k.id = ANY (ARRAY(
       SELECT j.id FROM detent.job j
        WHERE j.id = ANY (p_begun) AND j.lease_id = ANY (held) AND j.state = 'running' AND j.started_at IS NULL
          FOR UPDATE SKIP LOCKED));
  END IF;
  RETURN QUERY
    SELECT u.id, coalesce(array_agg(j.id ORDER BY j.id) FILTER (WHERE j.id IS NOT NULL), '{}'),
           coalesce(array_agg(j.attempt ORDER BY j.id) FILTER (WHERE j.id IS NOT NULL), '{}')
      FROM unnest(held) AS u (id)
      LEFT JOIN (
        SELECT k.id, k.attempt, k.lease_id FROM detent.job k
         WHERE k.id = ANY (jobs) AND k.state = 'running' AND k.cancel_requested_at IS NOT NULL AND NOT detent.is_undoing(k)
      ) j ON j.lease_id = u.id
     GROUP BY u.id;
END $$;

-- cancel_find: which of these running attempts are to be cancelled.
-- takes:   jobs and their attempts
-- gives:   those that run and have a cancel request, by job
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.cancel_find_v1(p_ids bigint[], p_attempts integer[])
RETURNS TABLE (job_id bigint, attempt integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT j.id, j.attempt
      FROM unnest(p_ids, p_attempts) AS u (id, attempt)
     CROSS JOIN LATERAL (SELECT k.id, k.attempt FROM detent.job k
                          WHERE k.id = u.id AND k.attempt = u.attempt AND k.state = 'running'
                            AND k.cancel_requested_at IS NOT NULL AND NOT detent.is_undoing(k) OFFSET 0) j
     ORDER BY j.id;
END $$;

-- Whether a workflow undoes its steps: it is not told to stop again.
CREATE OR REPLACE FUNCTION detent.is_undoing(j detent.job) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN j.cancel_undo IS NOT FALSE
     AND EXISTS (SELECT 1 FROM detent.workflow w WHERE w.job_id = j.id AND w.undoing_since IS NOT NULL AND w.undo_of IS NULL);
END $$;

-- event_append: append lines to jobs.
-- takes:   jobs, attempts (null: not by the holder), levels, messages, payloads, keys
-- gives:   one row per item: the number of the event and whether it is new; what was found instead of the holder, or
--          neither if there is no such job
-- locks:   the jobs, by id, each with its ready or waiting row first
-- refuses: callers that name an attempt and are not its holder; jobs that do not exist
CREATE OR REPLACE FUNCTION detent.event_append_v1(
  p_ids bigint[], p_attempts integer[], p_levels text[], p_messages text[], p_payloads text[], p_keys text[]
) RETURNS TABLE (ord integer, seq integer, created boolean, instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
  t    timestamptz := detent.clock();
  item record;
  line record;
  last record;
  j    detent.job;
BEGIN
  FOR item IN
    SELECT u.* FROM unnest(p_ids, p_attempts, p_levels, p_messages, p_payloads, p_keys) WITH ORDINALITY
      AS u (id, attempt, level, message, payload, key, ord) ORDER BY u.id, u.ord
  LOOP
    ord := item.ord;
    seq := NULL;
    created := false;
    instead := NULL;
    IF j.id IS DISTINCT FROM item.id THEN
      j := detent.job_lock(item.id);
      SELECT coalesce(max(e.seq), 0) AS seq, max(e.at) AS at INTO last
        FROM (SELECT f.seq, f.at FROM detent.event f WHERE f.job_id = item.id ORDER BY f.seq DESC LIMIT 1) e;
    END IF;
    IF item.attempt IS NOT NULL THEN
      instead := detent.holder_lost(j, item.attempt, t);
    END IF;
    IF instead IS NOT NULL OR j.id IS NULL THEN
      RETURN NEXT;
      CONTINUE;
    END IF;
    IF item.attempt IS NOT NULL AND j.started_at IS NULL THEN
      j.started_at := detent.job_now(j, t);
      UPDATE detent.job SET started_at = j.started_at WHERE id = j.id;
    END IF;
    item.attempt := coalesce(item.attempt, j.attempt);
    IF item.key IS NOT NULL THEN
      SELECT e.seq INTO seq FROM detent.event e WHERE e.job_id = j.id AND e.key = item.key;
    ELSE
      -- Backwards from the newest line, and no further than the window: times never go back within a job.
      FOR line IN SELECT e.* FROM detent.event e WHERE e.job_id = j.id ORDER BY e.seq DESC LOOP
        EXIT WHEN line.at <= t - interval '10 seconds';
        IF line.key IS NULL AND line.attempt = item.attempt AND line.level = item.level AND line.message = item.message
           AND line.payload IS NOT DISTINCT FROM item.payload THEN
          seq := line.seq;
        END IF;
      END LOOP;
    END IF;
    IF seq IS NULL THEN
      created := true;
      last.seq := last.seq + 1;
      last.at := greatest(detent.job_now(j, t), last.at);
      seq := last.seq;
      INSERT INTO detent.event (job_id, seq, attempt, level, message, payload, key, at)
        VALUES (j.id, seq, item.attempt, item.level, item.message, item.payload, item.key, last.at);
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;

-- The fence: why this caller is not the holder of (job, attempt); null if it is.
CREATE OR REPLACE FUNCTION detent.holder_lost(j detent.job, p_attempt integer, t timestamptz) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF j.id IS NULL THEN
    RETURN 'no such job';
  ELSIF j.state <> 'running' THEN
    RETURN 'the job is ' || j.state;
  ELSIF j.attempt <> p_attempt THEN
    RETURN 'attempt ' || j.attempt || ' is current';
  ELSIF NOT EXISTS (SELECT 1 FROM detent.lease l WHERE l.id = j.lease_id AND l.expires_at > t) THEN
    RETURN 'its lease has expired';
  END IF;
  RETURN NULL;
END $$;

-- Whether an attempt at a job is alive: running, under a lease that has not expired.
CREATE OR REPLACE FUNCTION detent.is_alive(p_job_id bigint, p_attempt integer, t timestamptz) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT 1 FROM detent.job j JOIN detent.lease l ON l.id = j.lease_id
                  WHERE j.id = p_job_id AND j.state = 'running' AND j.attempt = p_attempt AND l.expires_at > t)
$$;
