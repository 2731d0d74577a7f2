-- limit_put: create or change a limit.
-- takes:   the key, jobs per seconds, burst, how many at once (null: no bound), and its tasks and queues; those
--          that it has already stay; who, why, and the bounds as JSON for the record
-- gives:   nothing
-- locks:   the limit's row, and those of the keys that have its bounds
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.limit_put_v2(
  p_key text, p_rate double precision, p_per double precision, p_burst double precision, p_concurrency_max integer,
  p_tasks text[], p_queues text[], p_actor text, p_reason text, p_bounds text
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t      timestamptz := detent.clock();
  was    detent.rate_limit;
  is_new boolean;
  stands text;
BEGIN
  INSERT INTO detent.rate_limit AS l (key, rate, per, burst, concurrency_max, tokens, refilled_at)
    VALUES (p_key, p_rate, p_per, p_burst, p_concurrency_max, p_burst, t)
    ON CONFLICT (key) DO NOTHING;
  is_new := FOUND;
  -- In the lock order of a claim: limits of tasks and queues before those of keys.
  SELECT l.* INTO was FROM detent.rate_limit l WHERE l.key = p_key FOR UPDATE;
  IF is_new OR (was.rate, was.per, was.burst, was.concurrency_max) IS DISTINCT FROM (p_rate, p_per, p_burst, p_concurrency_max) THEN
    stands := CASE WHEN was.held_at IS NOT NULL THEN 'paused' WHEN was.open_until IS NOT NULL THEN 'half open' ELSE 'closed' END;
    INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, metadata, at)
      VALUES ('limit', p_key, CASE WHEN NOT is_new THEN stands END, stands, CASE WHEN is_new THEN 'create' ELSE 'change' END,
              p_actor, p_reason, p_bounds, t);
  END IF;
  PERFORM 1 FROM detent.rate_limit l WHERE l.template = p_key ORDER BY l.key FOR UPDATE;
  UPDATE detent.rate_limit l
     SET rate = p_rate, per = p_per, burst = p_burst, concurrency_max = p_concurrency_max,
         template = CASE WHEN l.key <> p_key THEN l.template END,
         tokens = CASE WHEN l.rate IS NULL THEN p_burst ELSE least(detent.limit_tokens(l, t), p_burst) END,
         refilled_at = greatest(l.refilled_at, t)
   WHERE l.key = p_key OR l.template = p_key;
  INSERT INTO detent.limit_member AS m (kind, name, limit_key)
    SELECT 'task', u.name, p_key FROM unnest(p_tasks) AS u (name)
    UNION SELECT 'queue', u.name, p_key FROM unnest(p_queues) AS u (name)
     ORDER BY 1, 2
    ON CONFLICT (kind, name) DO UPDATE SET limit_key = p_key WHERE m.limit_key <> p_key;
  -- Running jobs count too, under their own keys if they have one; they have taken no tokens.
  PERFORM detent.limits_make(array_agg(u.key), array_agg(p_key), t)
     FROM (SELECT DISTINCT j.limit_key AS key
             FROM detent.lease l
             JOIN detent.job j ON j.id = ANY (l.job_ids) AND j.lease_id = l.id AND j.state = 'running'
            WHERE j.task = ANY (p_tasks) AND j.limit_key IS NOT NULL ORDER BY 1) u;
  INSERT INTO detent.limit_slot (limit_key, job_id, attempt, cost)
    SELECT CASE WHEN j.task = ANY (p_tasks) THEN coalesce(j.limit_key, p_key) ELSE p_key END, j.id, j.attempt, 0
      FROM detent.lease l
      JOIN detent.job j ON j.id = ANY (l.job_ids) AND j.lease_id = l.id AND j.state = 'running'
     WHERE j.task = ANY (p_tasks) OR j.queue = ANY (p_queues)
    ON CONFLICT (limit_key, job_id) DO UPDATE SET attempt = excluded.attempt;
END $$;

-- limit_list: limits by key.
-- takes:   keys, tasks, queues (limits with one of these keys and limits of these tasks and queues; all limits if each is
--          null), the key to continue after, how many
-- gives:   one row per limit
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.limit_list_v2(
  p_keys text[], p_tasks text[], p_queues text[], p_after text, p_limit integer
) RETURNS TABLE (
  key text, rate double precision, per double precision, burst double precision, concurrency_max integer, tasks text[],
  queues text[], tokens double precision, running integer, paused_until timestamptz, throttled integer,
  open_until timestamptz, template text, held_at timestamptz
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  found text[];
BEGIN
  IF p_keys IS NULL AND p_tasks IS NULL AND p_queues IS NULL THEN
    found := ARRAY(SELECT l.key FROM detent.rate_limit l WHERE l.key > p_after ORDER BY l.key LIMIT p_limit);
  ELSE
    found := ARRAY(SELECT u.key FROM (
      SELECT unnest(p_keys) AS key
      UNION SELECT m.limit_key FROM detent.limit_member m WHERE m.kind = 'task' AND m.name = ANY (p_tasks)
      UNION SELECT m.limit_key FROM detent.limit_member m WHERE m.kind = 'queue' AND m.name = ANY (p_queues)) u
      WHERE u.key > p_after ORDER BY u.key LIMIT p_limit);
  END IF;
  RETURN QUERY
    SELECT l.key, l.rate, l.per, l.burst, l.concurrency_max,
           coalesce(m.tasks, '{}'), coalesce(m.queues, '{}'),
           detent.limit_tokens(l, detent.clock()),
           (SELECT count(*)::integer FROM detent.limit_slot s
              JOIN detent.job j ON j.id = s.job_id AND j.attempt = s.attempt AND j.state = 'running'
             WHERE s.limit_key = l.key),
           l.paused_until, l.throttled, l.open_until, l.template, l.held_at
      FROM detent.rate_limit l
      LEFT JOIN (
        SELECT n.limit_key, array_agg(n.name ORDER BY n.name COLLATE "C") FILTER (WHERE n.kind = 'task') AS tasks,
               array_agg(n.name ORDER BY n.name COLLATE "C") FILTER (WHERE n.kind = 'queue') AS queues
          FROM detent.limit_member n WHERE n.limit_key = ANY (found) GROUP BY n.limit_key) m ON m.limit_key = l.key
     WHERE l.key = ANY (found) ORDER BY l.key;
END $$;

-- limit_refill: in how many seconds the quickest bucket on some tasks and queues fills up.
-- takes:   queues (null: all), tasks
-- gives:   the seconds; infinity if none of their limits has a rate; null if they have no limit
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.limit_refill_v1(p_queues text[], p_tasks text[]) RETURNS double precision
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN (
    SELECT min(coalesce(l.burst * l.per / l.rate, 'infinity'))
      FROM detent.rate_limit l
     WHERE l.key IN (
       SELECT m.limit_key FROM detent.limit_member m WHERE m.kind = 'task' AND m.name = ANY (p_tasks)
       UNION
       SELECT m.limit_key FROM detent.limit_member m WHERE m.kind = 'queue' AND (p_queues IS NULL OR m.name = ANY (p_queues))));
END $$;

-- limit_close: close the breakers under which an attempt has succeeded.
-- takes:   the key to continue after, how many open breakers to read
-- gives:   the key to continue after, null at the end
-- locks:   the limits it reads; skips those that others have locked
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.limit_close_v1(p_after text, p_limit integer) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t      timestamptz := detent.clock();
  looked text[] := ARRAY(
    SELECT l.key FROM detent.rate_limit l WHERE l.open_until IS NOT NULL AND l.key > p_after ORDER BY l.key LIMIT p_limit);
BEGIN
  PERFORM detent.limits_sweep(ARRAY(
    SELECT l.key FROM detent.rate_limit l WHERE l.key = ANY (looked) ORDER BY l.key FOR UPDATE SKIP LOCKED), t);
  RETURN CASE WHEN cardinality(looked) = p_limit THEN looked[p_limit] END;
END $$;

-- limit_pause: let no job start under a limit until it is reset.
-- takes:   the key, who, why. A key of jobs that has no limit yet because none was claimed gets one
-- gives:   whether this changed anything; null if there is no such limit
-- locks:   the limit's row
-- refuses: a limit that does not exist
CREATE OR REPLACE FUNCTION detent.limit_pause_v1(p_key text, p_actor text, p_reason text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t timestamptz := detent.clock();
  l detent.rate_limit;
BEGIN
  PERFORM detent.limits_make(ARRAY[p_key], ARRAY[min(m.limit_key)], t)
     FROM detent.lane n JOIN detent.limit_member m ON m.kind = 'task' AND m.name = n.task
    WHERE n.limit_key = p_key AND p_key <> '';
  SELECT k.* INTO l FROM detent.rate_limit k WHERE k.key = p_key FOR UPDATE;
  IF l.key IS NULL OR l.held_at IS NOT NULL THEN
    RETURN CASE WHEN l.key IS NOT NULL THEN false END;
  END IF;
  UPDATE detent.rate_limit k SET held_at = t WHERE k.key = p_key;
  PERFORM detent.limit_log(
    p_key, CASE WHEN l.open_until IS NULL THEN 'closed' ELSE 'half open' END, 'paused', 'pause', p_actor, p_reason, t);
  RETURN true;
END $$;

-- limit_reset: end the pause of a limit, close its breaker and fill its bucket.
-- takes:   the key, who, why
-- gives:   whether there was a pause or an open breaker; null if there is no such limit
-- locks:   the limit's row
-- refuses: a limit that does not exist
CREATE OR REPLACE FUNCTION detent.limit_reset_v1(p_key text, p_actor text, p_reason text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t     timestamptz := detent.clock();
  l     detent.rate_limit;
  found text;
BEGIN
  SELECT k.* INTO l FROM detent.rate_limit k WHERE k.key = p_key FOR UPDATE;
  IF l.key IS NULL THEN
    RETURN NULL;
  END IF;
  found := CASE WHEN l.open_until IS NOT NULL THEN 'open'
                WHEN l.held_at IS NOT NULL OR l.paused_until > t THEN 'paused' END;
  UPDATE detent.rate_limit k
     SET paused_until = NULL, held_at = NULL, throttled = 0, throttled_at = NULL, open_until = NULL, tokens = k.burst,
         refilled_at = greatest(k.refilled_at, t)
   WHERE k.key = p_key;
  IF found IS NOT NULL THEN
    PERFORM detent.limit_log(p_key, found, 'closed', 'reset', p_actor, p_reason, t);
    PERFORM detent.wake_waiters(false);
  END IF;
  RETURN found IS NOT NULL;
END $$;

-- limit_remove: remove a limit, and the keys that have its bounds.
-- takes:   the key, who, why
-- gives:   how many jobs wait or run under it, if it stays; 0 if it was removed; null if there is no such limit
-- locks:   the limit's row, and those of the keys that have its bounds
-- refuses: a limit that does not exist; one that jobs need
CREATE OR REPLACE FUNCTION detent.limit_remove_v1(p_key text, p_actor text, p_reason text DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t       timestamptz := detent.clock();
  l       detent.rate_limit;
  keys    text[];
  lanes   bigint[];
  needing bigint;
BEGIN
  -- In the lock order of a claim: limits of tasks and queues before those of keys.
  PERFORM 1 FROM detent.rate_limit k WHERE k.key = p_key FOR UPDATE;
  PERFORM 1 FROM detent.rate_limit k WHERE k.template = p_key ORDER BY k.key FOR UPDATE;
  SELECT k.* INTO l FROM detent.rate_limit k WHERE k.key = p_key;
  IF l.key IS NULL THEN
    RETURN NULL;
  END IF;
  keys := ARRAY(SELECT k.key FROM detent.rate_limit k WHERE k.key = p_key OR k.template = p_key);
  -- A key is needed by the jobs that have it; any other limit by those of its tasks and queues.
  lanes := ARRAY(
    SELECT n.id FROM detent.lane n
     WHERE n.limit_key = p_key
        OR EXISTS (SELECT 1 FROM detent.limit_member m WHERE m.limit_key = p_key
                    AND (m.kind = 'task' AND m.name = n.task OR m.kind = 'queue' AND m.name = n.queue)));
  needing := (SELECT count(*) FROM detent.ready r WHERE r.lane_id = ANY (lanes))
           + (SELECT count(*) FROM detent.waiting w WHERE w.lane_id = ANY (lanes))
           + (SELECT count(DISTINCT s.job_id) FROM detent.limit_slot s
                JOIN detent.job j ON j.id = s.job_id AND j.attempt = s.attempt AND j.state = 'running'
               WHERE s.limit_key = ANY (keys));
  IF needing > 0 THEN
    RETURN needing;
  END IF;
  PERFORM detent.limit_log(p_key, CASE WHEN l.held_at IS NOT NULL THEN 'paused' ELSE 'closed' END, 'removed', 'remove',
                           p_actor, p_reason, t);
  DELETE FROM detent.limit_slot s WHERE s.limit_key = ANY (keys);
  DELETE FROM detent.limit_member m WHERE m.limit_key = p_key;
  DELETE FROM detent.rate_limit k WHERE k.key = ANY (keys);
  RETURN 0;
END $$;

-- Whether this is the limit of a group of children (`ChildrenLimit`) that has ended, or is gone, for good.
CREATE OR REPLACE FUNCTION detent.limit_of_ended_children(p_key text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
  part text[] := regexp_match(p_key, '^detent\.children:([0-9]{1,18}):([0-9]{1,9}):(.*)$');
BEGIN
  RETURN part IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM detent.child_group g
     WHERE g.parent_id = part[1]::bigint AND g.generation = part[2]::integer AND g.path = part[3]
       AND NOT (g.closed AND g.succeeded + g.failed = g.total));
END $$;

-- limit_prune: delete slots of attempts that have ended, keys that hold nothing that their template does not (the bucket
-- is full and nothing runs under the key), and limits of groups of children that have ended.
-- takes:   the key to continue after, how many limits to read
-- gives:   how many were deleted, and the key to continue after, null at the end
-- locks:   the limits that have such slots, and those that are deleted; skips what others have locked
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.limit_prune_v1(p_after text, p_limit integer) RETURNS TABLE (limits integer, next_key text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t      timestamptz := detent.clock();
  looked text[] := ARRAY(SELECT l.key FROM detent.rate_limit l WHERE l.key > p_after ORDER BY l.key LIMIT p_limit);
  idle   text[];
  gone   text[];
BEGIN
  PERFORM detent.limits_sweep(ARRAY(
    SELECT l.key FROM detent.rate_limit l
     WHERE l.key = ANY (looked)
       AND (SELECT 1 FROM detent.limit_slot s
             WHERE s.limit_key = l.key AND (SELECT true FROM detent.job j
               WHERE j.id = s.job_id AND j.attempt = s.attempt AND j.state = 'running') IS NULL LIMIT 1) IS NOT NULL
     ORDER BY l.key FOR UPDATE SKIP LOCKED), t);
  idle := ARRAY(
    SELECT l.key FROM detent.rate_limit l
     WHERE l.key = ANY (looked)
       AND (l.template IS NOT NULL OR detent.limit_of_ended_children(l.key))
       AND l.held_at IS NULL AND l.open_until IS NULL AND l.throttled = 0
       AND coalesce(l.paused_until <= t, true) AND (l.rate IS NULL OR detent.limit_tokens(l, t) >= l.burst)
       FOR UPDATE SKIP LOCKED);
  -- Slots are read after the limits are locked. A claim adds a slot without changing its limit, so a claim that ended
  -- just before the lock would be missed otherwise.
  WITH went AS (
    DELETE FROM detent.rate_limit l
     WHERE l.key = ANY (idle)
       AND NOT EXISTS (
         SELECT 1 FROM detent.limit_slot s
           JOIN detent.job j ON j.id = s.job_id AND j.attempt = s.attempt AND j.state = 'running'
          WHERE s.limit_key = l.key)
    RETURNING key
  )
  SELECT array_agg(w.key) INTO gone FROM went w;
  DELETE FROM detent.limit_slot s WHERE s.limit_key = ANY (gone);
  limits := coalesce(cardinality(gone), 0);
  next_key := CASE WHEN cardinality(looked) = p_limit THEN looked[p_limit] END;
  RETURN NEXT;
END $$;

-- Record a change of a limit. If a breaker opens or closes, send a notice to the client and to the server's log.
CREATE OR REPLACE FUNCTION detent.limit_log(
  p_key text, p_from text, p_to text, p_trigger text, p_actor text, p_reason text, t timestamptz
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    VALUES ('limit', p_key, p_from, p_to, p_trigger, p_actor, p_reason, t);
  IF p_to = 'open' THEN
    RAISE WARNING USING ERRCODE = 'DT010', MESSAGE = format('the breaker of limit %L is open: %s', p_key, p_reason);
  ELSIF p_from = 'open' THEN
    RAISE NOTICE USING ERRCODE = 'DT010', MESSAGE = format('the breaker of limit %L is closed: %s', p_key, coalesce(p_reason, 'by ' || p_actor));
  END IF;
END $$;
