-- entity_move: the record of a move of a user's own entity. The caller moves the row itself, in the same transaction and
-- with its own rights; the guard on the table looks for this line.
-- takes:   the lifecycle's name, the entity's id, from, to, trigger, who, why, metadata
-- gives:   nothing
-- locks:   nothing
-- refuses: entities of Detent's own
CREATE OR REPLACE FUNCTION detent.entity_move_v1(
  p_entity text, p_entity_id text, p_from text, p_to text, p_trigger text, p_actor text, p_reason text DEFAULT NULL,
  p_metadata text DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  last timestamptz := (SELECT l.at FROM detent.transition_log l
                        WHERE l.job_id IS NULL AND l.entity = p_entity AND l.entity_id = p_entity_id
                        ORDER BY l.n DESC LIMIT 1);
BEGIN
  IF p_entity IN ('alert', 'alert_policy', 'batch_run', 'database', 'execution', 'job', 'limit', 'operation', 'ops_run',
                  'partition', 'pipeline_run', 'queue', 'recovery', 'schedule', 'target', 'worker') THEN
    RAISE EXCEPTION 'DT041 % is moved by Detent alone', p_entity USING ERRCODE = 'DT041';
  END IF;
  INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, metadata, forced, at)
    VALUES (p_entity, p_entity_id, p_from, p_to, p_trigger, p_actor, p_reason, p_metadata, p_trigger = 'force',
            greatest(detent.clock(), last));
END $$;

-- transitions: every change of one entity, in order.
-- takes:   the kind of entity and its id
-- gives:   rows of the view transition
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.transitions_v1(p_entity text, p_entity_id text) RETURNS SETOF detent.transition
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  of_job bigint := CASE WHEN p_entity IN ('job', 'execution') AND split_part(p_entity_id, '/', 1) ~ '^[0-9]{1,18}$'
                        THEN split_part(p_entity_id, '/', 1)::bigint END;
BEGIN
  IF p_entity = 'target' THEN
    IF p_entity_id ~ '^[0-9]{1,18}/[0-9]{1,9}$' THEN
      RETURN QUERY
        SELECT v.tenant, v.entity, v.job_id, v.entity_id, v.from_state, v.to_state, v.trigger, v.at, v.actor, v.reason, v.metadata,
               v.correlation_id, v.forced, v.attempt, v.rank, v.n
          FROM detent.target_transition v
         WHERE v.run_id = split_part(p_entity_id, '/', 1)::bigint AND v.target_n = split_part(p_entity_id, '/', 2)::integer
         ORDER BY v.attempt, v.rank, v.n;
    END IF;
    RETURN;
  END IF;
  IF of_job IS NOT NULL THEN
    RETURN QUERY
      SELECT v.* FROM detent.transition v
       WHERE v.job_id = of_job AND v.entity = p_entity AND v.entity_id = p_entity_id
       ORDER BY v.attempt, v.rank, v.n;
  ELSE
    RETURN QUERY
      SELECT v.* FROM detent.transition v
       WHERE v.job_id IS NULL AND v.entity = p_entity AND v.entity_id = p_entity_id
       ORDER BY v.attempt, v.rank, v.n;
  END IF;
END $$;

-- state_as_of: the state of an entity at a past moment, folded from the record.
-- takes:   the kind of entity, its id, the moment
-- gives:   the state; null before its beginning
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.state_as_of_v1(p_entity text, p_entity_id text, p_at timestamptz) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN (SELECT v.to_state FROM detent.transitions_v1(p_entity, p_entity_id) v
           WHERE v.entity = p_entity AND v.at <= p_at
           ORDER BY v.attempt DESC, v.rank DESC, v.n DESC LIMIT 1);
END $$;

-- record_search: lines of the record that fit, the newest first.
-- takes:   actor, kind of entity, its id, the earliest time (null is any for each); the place to continue after; how many lines to
--          give, and how many to read
-- gives:   lines that fit; and, if it stopped looking before the end, the last line it looked at, which does not fit
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.record_search_v1(
  p_actor text, p_entity text, p_entity_id text, p_since timestamptz, p_after_at timestamptz, p_after_n bigint,
  p_limit integer, p_looks integer
) RETURNS TABLE (fits boolean, line detent.transition_log)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  step   integer := p_limit;  -- without other filters the first portion is the page
  of_job bigint := CASE WHEN p_entity = 'job' AND p_entity_id ~ '^[0-9]{1,18}$' THEN p_entity_id::bigint END;
  found  integer := 0;
  looked integer := 0;
  more   integer;
  ns     bigint[];
BEGIN
  LOOP
    IF of_job IS NOT NULL THEN
      ns := ARRAY(SELECT l.n FROM detent.transition_log l
                   WHERE l.job_id = of_job AND (l.at, l.n) < (p_after_at, p_after_n) ORDER BY l.n DESC LIMIT step);
    ELSIF p_entity_id IS NOT NULL THEN
      ns := ARRAY(SELECT l.n FROM detent.transition_log l
                   WHERE l.job_id IS NULL AND l.entity = p_entity AND l.entity_id = p_entity_id
                     AND (l.at, l.n) < (p_after_at, p_after_n) ORDER BY l.n DESC LIMIT step);
    ELSIF p_actor IS NOT NULL THEN
      ns := ARRAY(SELECT l.n FROM detent.transition_log l
                   WHERE l.actor = p_actor AND (l.at, l.n) < (p_after_at, p_after_n) AND l.at >= p_since
                   ORDER BY l.at DESC, l.n DESC LIMIT step);
    ELSE
      ns := ARRAY(SELECT l.n FROM detent.transition_log l
                   WHERE (l.at, l.n) < (p_after_at, p_after_n) AND l.at >= p_since ORDER BY l.at DESC, l.n DESC LIMIT step);
    END IF;
    RETURN QUERY
      SELECT true, l FROM detent.transition_log l
       WHERE l.n = ANY (ns) AND l.at >= p_since AND (p_actor IS NULL OR l.actor = p_actor)
         AND (p_entity IS NULL OR l.entity = p_entity) AND (p_entity_id IS NULL OR l.entity_id = p_entity_id)
       ORDER BY l.at DESC, l.n DESC LIMIT p_limit - found;
    GET DIAGNOSTICS more = ROW_COUNT;
    found := found + more;
    looked := looked + cardinality(ns);
    EXIT WHEN found >= p_limit OR cardinality(ns) < step;
    IF looked >= p_looks THEN
      RETURN QUERY SELECT false, l FROM detent.transition_log l WHERE l.n = ns[step];
      EXIT;
    END IF;
    SELECT l.at, l.n INTO p_after_at, p_after_n FROM detent.transition_log l WHERE l.n = ns[step];
    step := greatest(p_limit, 1000);
  END LOOP;
END $$;

-- record_feed: lines of the record whose numbers are in some ranges, in order of the numbers.
-- takes:   the ranges, ascending; how many lines to give
-- gives:   first a row without a line: the highest number given out so far; the number up to which every number has its line or
--          never gets one; whether retention may have deleted lines that the reader wanted. Then the lines
-- locks:   nothing
-- refuses: nothing
-- differs: SQLite has one writer, so its numbers are in the order of commit, and all of them are decided
CREATE OR REPLACE FUNCTION detent.record_feed_v1(p_lows bigint[], p_highs bigint[], p_limit integer)
RETURNS TABLE (top bigint, decided bigint, pruned boolean, line detent.transition_log)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  wanted bigint := p_lows[cardinality(p_lows)];
  lines  detent.transition_log[];
BEGIN
  -- The order of these three statements matters. A number up to `top` was taken before now, so its transaction has its
  -- lock by now, or has ended. If it has ended, the snapshot of the third statement sees its line.
  top := (SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END FROM detent.transition_log_n_seq s);
  IF cardinality(p_lows) = 1 AND wanted > top THEN
    RETURN QUERY SELECT top, 0::bigint, false, NULL::detent.transition_log;
    RETURN;
  END IF;
  decided := CASE WHEN current_setting('transaction_isolation') = 'read committed'
                  THEN least(top, (SELECT min(((k.classid::bigint - 1148452864) << 32) + k.objid::bigint) FROM pg_locks k
                                    WHERE k.locktype = 'advisory' AND k.objsubid = 1
                                      AND k.classid::bigint BETWEEN 1148452864 AND 1148518399
                                      AND k.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())))
                  ELSE 0 END;  -- otherwise the snapshot may be older than the locks
  lines := ARRAY(SELECT l FROM unnest(p_lows, p_highs) AS r (low, high)
                  CROSS JOIN LATERAL (SELECT t.* FROM detent.transition_log t
                                       WHERE t.n BETWEEN r.low AND least(r.high, top) ORDER BY t.n LIMIT p_limit) l
                  ORDER BY l.n LIMIT p_limit);
  pruned := wanted > 1 AND wanted <= decided AND coalesce(lines[cardinality(lines)].n, top) - wanted + 1 > cardinality(lines)
            AND coalesce((SELECT max(h.before) FROM detent.horizon h)
                         > coalesce((SELECT t.at FROM detent.transition_log t WHERE t.n < wanted ORDER BY t.n DESC LIMIT 1), '-infinity'), false);
  RETURN QUERY SELECT top, decided, pruned, NULL::detent.transition_log;
  RETURN QUERY SELECT NULL::bigint, NULL::bigint, NULL::boolean, f FROM unnest(lines) f;
END $$;

-- job_marks: how far jobs are.
-- takes:   ids
-- gives:   of each that exists: tenant, state, the last step of its attempts, its last explicit move and its last event
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_marks_v1(p_ids bigint[])
RETURNS TABLE (job_id bigint, tenant text, state text, attempt integer, rank integer, n bigint, seq integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
    SELECT j.id, j.tenant, j.state, j.attempt,
           CASE WHEN j.state = 'running' THEN CASE WHEN j.committed_at IS NOT NULL THEN 30 WHEN j.started_at IS NOT NULL THEN 20 ELSE 11 END
                WHEN j.attempt = 0 THEN 0 ELSE 51 END,
           coalesce((SELECT l.n FROM detent.transition_log l WHERE l.job_id = j.id ORDER BY l.n DESC LIMIT 1), 0),
           coalesce((SELECT e.seq FROM detent.event e WHERE e.job_id = j.id ORDER BY e.seq DESC LIMIT 1), 0)
      FROM detent.job j WHERE j.id = ANY (p_ids);
END $$;

-- job_changes: transitions of a job and of its executions after a place, in order.
-- takes:   the job; the attempt and rank of the last ordinary step, and the number of the last explicit move; how many
-- gives:   rows of the view transition
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_changes_v1(p_job_id bigint, p_attempt integer, p_rank integer, p_n bigint, p_limit integer)
RETURNS SETOF detent.transition
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT v.* FROM detent.transition v
     WHERE v.job_id = p_job_id AND v.attempt >= p_attempt
       AND (v.n > p_n OR (v.n = 0 AND (v.attempt, v.rank) > (p_attempt, p_rank)))
     ORDER BY v.attempt, v.rank, v.n LIMIT p_limit;
END $$;

-- entity_changes: explicit changes of an entity that is not a job after a line, in order.
-- takes:   the kind of entity and its id, the line, how many
-- gives:   lines of the log
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.entity_changes_v1(p_entity text, p_entity_id text, p_n bigint, p_limit integer)
RETURNS SETOF detent.transition_log
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT l.* FROM detent.transition_log l
     WHERE l.job_id IS NULL AND l.entity = p_entity AND l.entity_id = p_entity_id AND l.n > p_n ORDER BY l.n LIMIT p_limit;
END $$;

-- log_prune: delete lines of the log that belong to no job and are not needed, and horizons that were superseded.
-- takes:   the horizon, the line to continue after, how many lines to read, who
-- gives:   how many lines went, and the line to continue after, null at the end
-- locks:   the lines that go
-- refuses: nothing; what the guards keep stays
CREATE OR REPLACE FUNCTION detent.log_prune_v1(p_before timestamptz, p_after bigint, p_limit integer, p_actor text)
RETURNS TABLE (lines integer, next_n bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  looked bigint[];
  old    bigint[];
  some_old boolean;
BEGIN
  INSERT INTO detent.horizon (before, actor, at)
    SELECT p_before, p_actor, detent.clock() WHERE NOT EXISTS (SELECT 1 FROM detent.horizon h WHERE h.before >= p_before);
  DELETE FROM detent.horizon WHERE n = ANY (ARRAY(
    SELECT h.n FROM detent.horizon h
     WHERE h.before < p_before AND h.at < p_before AND h.before < (SELECT max(m.before) FROM detent.horizon m)
     ORDER BY h.before LIMIT p_limit));
  SELECT array_agg(a.n ORDER BY a.n), array_agg(a.n) FILTER (WHERE a.at < p_before AND a.job_id IS NULL), bool_or(a.at < p_before)
    INTO looked, old, some_old
    FROM (SELECT l.n, l.at, l.job_id FROM detent.transition_log l WHERE l.n > p_after ORDER BY l.n LIMIT p_limit) a;
  DELETE FROM detent.transition_log o
   WHERE o.n = ANY (old)
     AND CASE o.entity
           WHEN 'batch_run' THEN NOT EXISTS (SELECT 1 FROM detent.batch_run b WHERE b.id = o.entity_id::bigint)
           WHEN 'pipeline_run' THEN NOT EXISTS (SELECT 1 FROM detent.pipeline_run r WHERE r.id = o.entity_id::bigint)
           ELSE EXISTS (SELECT 1 FROM detent.transition_log l
                         WHERE l.job_id IS NULL AND l.entity = o.entity AND l.entity_id = o.entity_id AND l.n > o.n AND l.at < p_before)
         END;
  GET DIAGNOSTICS lines = ROW_COUNT;
  -- Lines are written in the order of time, but for those of one moment: a portion without an old line is the last one.
  next_n := CASE WHEN cardinality(looked) = p_limit AND some_old THEN looked[p_limit] END;
  RETURN NEXT;
END $$;
