-- ids_reserve: reserve consecutive ids, which are never given again.
-- takes:   how many
-- gives:   the first of them, above all ids in use: a restored database may count from the beginning again
-- locks:   an advisory lock, only until the sequence has moved: an open transaction of a caller blocks no other session
-- refuses: nothing
-- differs: a sequence does not roll back, so ids of a transaction that failed are lost; SQLite's come back
CREATE OR REPLACE FUNCTION detent.ids_reserve_v1(p_count integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  first bigint;
  used  bigint := greatest((SELECT max(j.id) FROM detent.job j), (SELECT max(l.id) FROM detent.lease l), 0);
BEGIN
  BEGIN
    PERFORM pg_advisory_xact_lock(7310868735422392933);
    first := nextval('detent.id_seq');
    IF first <= used THEN
      first := used + 1;
      PERFORM setval('detent.id_seq', first);
    END IF;
    IF p_count > 1 THEN
      PERFORM setval('detent.id_seq', first + p_count - 1);
    END IF;
    RAISE SQLSTATE 'DT000';  -- releases the lock; the sequence keeps its value
  EXCEPTION WHEN SQLSTATE 'DT000' THEN
    RETURN first;
  END;
END $$;

-- job_enqueue: accept jobs in state pending.
-- takes:   one array per column, with a single element if all items have the same value, empty if it is null for all.
--          p_notify: always notify waiters, instead of looking first whether a worker waits
-- gives:   a row for each item that was not created: found (job_id is the existing job), id_conflict, key_conflict
--          (job_id holds the key); cause is the item that was refused, if it refused its group
-- locks:   new rows only, and the keys of debounced calls. A key that an open transaction has taken is waited for.
-- refuses: item by item, and all items of a group together
-- differs: SQLite has one writer, so there are no races for a key
CREATE OR REPLACE FUNCTION detent.job_enqueue_v1(
  p_ids bigint[], p_nonces bigint[], p_tasks text[], p_payloads text[],
  p_queues text[] DEFAULT '{default}', p_tenants text[] DEFAULT '{""}', p_priorities smallint[] DEFAULT '{0}',
  p_attempts_max integer[] DEFAULT '{4}', p_dead_letters boolean[] DEFAULT '{true}',
  p_idempotents boolean[] DEFAULT '{true}', p_unique_pendings boolean[] DEFAULT '{false}',
  p_due_ats timestamptz[] DEFAULT '{}', p_expires_ats timestamptz[] DEFAULT '{}', p_metadatas text[] DEFAULT '{}',
  p_correlation_ids text[] DEFAULT '{}', p_traceparents text[] DEFAULT '{}', p_run_ids bigint[] DEFAULT '{}',
  p_limit_keys text[] DEFAULT '{}', p_keys text[] DEFAULT '{}', p_fingerprints text[] DEFAULT '{}',
  p_key_ttls double precision[] DEFAULT '{}', p_groups bigint[] DEFAULT '{}',
  p_notify boolean DEFAULT true, p_costs integer[] DEFAULT '{}', p_parent_ids bigint[] DEFAULT '{}'
) RETURNS TABLE (ord integer, answer text, job_id bigint, cause integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
  t       timestamptz := detent.clock();
  total   integer := cardinality(p_ids);
  lane    bigint;
  there   bigint[];
  without integer[];
  made    bigint[];
BEGIN
  IF total = 0 THEN
    RETURN;
  END IF;
  IF total = 1 AND cardinality(p_keys) = 0 AND NOT p_unique_pendings[1] AND cardinality(p_costs) = 0
     AND cardinality(p_parent_ids) = 0 THEN
    -- The ordinary call. If the job was not created, the answer is found below.
    IF detent.job_enqueue_one_v1(
         p_ids[1], p_nonces[1], p_tasks[1], p_payloads[1], p_queues[1], p_tenants[1], p_priorities[1], p_attempts_max[1],
         p_dead_letters[1], p_idempotents[1], p_due_ats[1], p_expires_ats[1], p_metadatas[1], p_correlation_ids[1],
         p_traceparents[1], p_run_ids[1], p_limit_keys[1], p_notify) THEN
      RETURN;
    END IF;
  END IF;
  IF total > 1 AND cardinality(p_keys) = 0 AND cardinality(p_due_ats) = 0 AND cardinality(p_expires_ats) = 0
     AND cardinality(p_limit_keys) = 0 AND cardinality(p_costs) = 0 AND cardinality(p_tasks) = 1 AND cardinality(p_queues) = 1
     AND cardinality(p_tenants) = 1 AND cardinality(p_priorities) = 1 AND cardinality(p_attempts_max) = 1
     AND cardinality(p_dead_letters) = 1 AND cardinality(p_idempotents) = 1 AND p_unique_pendings = '{false}'
     AND cardinality(p_parent_ids) <= 1 THEN
    -- Many of one kind, due now: plain inserts at half the cost. If an id exists already, they are rolled back, and all
    -- items are checked below.
    BEGIN
      lane := detent.lane_of(p_queues[1], p_tasks[1], p_tenants[1], p_priorities[1], NULL);
      INSERT INTO detent.job (id, tenant, task, queue, priority, due_at, payload, metadata, correlation_id,
          traceparent, run_id, nonce, created_at, attempts_max, dead_letter, idempotent, parent_id)
        SELECT u.id, p_tenants[1], p_tasks[1], p_queues[1], p_priorities[1], t, coalesce(u.payload, p_payloads[1]),
               u.metadata, u.correlation_id, u.traceparent, u.run_id, coalesce(u.nonce, p_nonces[1]), t,
               p_attempts_max[1], p_dead_letters[1], p_idempotents[1], p_parent_ids[1]
          FROM unnest(p_ids, p_nonces, p_payloads, p_metadatas, p_correlation_ids, p_traceparents, p_run_ids)
            AS u (id, nonce, payload, metadata, correlation_id, traceparent, run_id);
      INSERT INTO detent.ready (lane_id, ready_at, job_id) SELECT lane, t, u.id FROM unnest(p_ids) AS u (id);
      PERFORM detent.jobs_date(t, p_ids);
      PERFORM detent.wake_waiters(p_notify);
      RETURN;
    EXCEPTION WHEN unique_violation THEN
      NULL;
    END;
  END IF;
  IF cardinality(p_keys) > 0 OR cardinality(p_groups) > 0 THEN
    RETURN QUERY SELECT k.* FROM detent.jobs_enqueue_keyed(
      t, p_ids, p_nonces, p_tasks, p_payloads, p_queues, p_tenants, p_priorities, p_attempts_max, p_dead_letters, p_idempotents,
      p_unique_pendings, p_due_ats, p_expires_ats, p_metadatas, p_correlation_ids, p_traceparents, p_run_ids, p_limit_keys,
      p_keys, p_fingerprints, p_key_ttls, p_groups, p_notify, p_costs, p_parent_ids) k;
    RETURN;
  END IF;
  -- The plain set: only ids have to be checked. All at once, and a second look only if an id exists already.
  there := ARRAY(SELECT j.id FROM detent.job j WHERE j.id = ANY (p_ids));
  without := CASE WHEN cardinality(there) = 0 THEN '{}' ELSE
    ARRAY(SELECT u.ord::integer FROM unnest(p_ids) WITH ORDINALITY AS u (id, ord) WHERE u.id = ANY (there)) END;
  IF cardinality(without) < total THEN
    made := detent.jobs_insert(
      t, without, p_ids, p_nonces, p_tasks, p_payloads, p_queues, p_tenants, p_priorities, p_attempts_max,
      p_dead_letters, p_idempotents, p_unique_pendings, p_due_ats, p_expires_ats, p_metadatas, p_correlation_ids,
      p_traceparents, p_run_ids, p_limit_keys, p_costs, p_parent_ids);
    PERFORM detent.wake_waiters(p_notify);
  END IF;
  IF cardinality(made) = total THEN
    RETURN;
  END IF;
  RETURN QUERY
    SELECT n.ord::integer, CASE WHEN same.id IS NULL THEN 'id_conflict' ELSE 'found' END, n.id, n.ord::integer
      FROM (SELECT u.*, row_number() OVER (PARTITION BY u.id ORDER BY u.ord) AS nth
              FROM unnest(p_ids, p_nonces, p_tasks, p_payloads) WITH ORDINALITY
                AS u (id, nonce, task, payload, ord)) n
      LEFT JOIN LATERAL (
        SELECT j.id FROM detent.job j
         WHERE j.id = n.id AND j.nonce = coalesce(n.nonce, p_nonces[1]) AND j.task = coalesce(n.task, p_tasks[1])
           AND j.payload = coalesce(n.payload, p_payloads[1])) same ON true
     WHERE n.nth > 1 OR n.id <> ALL (coalesce(made, '{}'))
     ORDER BY n.ord;
END $$;

-- Enqueue the keyed set: jobs with keys, or in groups. Takes and gives what job_enqueue does.
CREATE OR REPLACE FUNCTION detent.jobs_enqueue_keyed(
  t timestamptz, p_ids bigint[], p_nonces bigint[], p_tasks text[], p_payloads text[], p_queues text[], p_tenants text[],
  p_priorities smallint[], p_attempts_max integer[], p_dead_letters boolean[], p_idempotents boolean[],
  p_unique_pendings boolean[], p_due_ats timestamptz[], p_expires_ats timestamptz[], p_metadatas text[],
  p_correlation_ids text[], p_traceparents text[], p_run_ids bigint[], p_limit_keys text[], p_keys text[],
  p_fingerprints text[], p_key_ttls double precision[], p_groups bigint[], p_notify boolean, p_costs integer[], p_parent_ids bigint[]
) RETURNS TABLE (ord integer, answer text, job_id bigint, cause integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  total      integer := cardinality(p_ids);
  there      bigint[];
  without    integer[];
  made       bigint[];
  item       record;
  holder     detent.job_key;
  is_taken   boolean;
  is_same    boolean;
  first      integer;
  found_id   bigint[];
  refused    text[] := array_fill(NULL::text, ARRAY[total]);
  refused_id bigint[] := array_fill(NULL::bigint, ARRAY[total]);
  refused_by integer[] := array_fill(NULL::integer, ARRAY[total]);
BEGIN
  IF cardinality(p_groups) = 1 AND total > 1 THEN
    p_groups := array_fill(p_groups[1], ARRAY[total]);
  END IF;
  -- Items are checked one by one, then those that passed are inserted at once. A round starts again if an item refuses its
  -- group, or if another session has just used an id.
  LOOP
    BEGIN
      there := ARRAY(SELECT j.id FROM detent.job j WHERE j.id = ANY (p_ids));
      found_id := array_fill(NULL::bigint, ARRAY[total]);
      without := '{}';
      made := '{}';
      -- Without keys and with new ids there is nothing to check, however large the group.
      IF cardinality(p_keys) > 0 OR cardinality(there) > 0
         OR total <> (SELECT count(DISTINCT u.id) FROM unnest(p_ids) AS u (id)) THEN
        FOR item IN
          SELECT u.ord::integer AS ord, u.id, coalesce(u.nonce, p_nonces[1]) AS nonce,
                 coalesce(u.task, p_tasks[1]) AS task, coalesce(u.payload, p_payloads[1]) AS payload,
                 coalesce(u.tenant, p_tenants[1]) AS tenant,
                 coalesce(u.unique_pending, p_unique_pendings[1]) AS unique_pending, u.key,
                 coalesce(u.fingerprint, p_fingerprints[1]) AS fingerprint, u.key_ttl, u.grp
            FROM unnest(p_ids, p_nonces, p_tasks, p_payloads, p_tenants, p_unique_pendings, p_keys, p_fingerprints,
                        p_key_ttls, p_groups) WITH ORDINALITY
              AS u (id, nonce, task, payload, tenant, unique_pending, key, fingerprint, key_ttl, grp, ord)
           ORDER BY u.ord
        LOOP
          IF refused[item.ord] IS NULL THEN
            first := array_position(made, item.id);
            IF item.id = ANY (there) OR first IS NOT NULL THEN
              IF first IS NULL THEN
                is_same := EXISTS (SELECT 1 FROM detent.job j WHERE j.id = item.id AND j.task = item.task
                                      AND j.payload = item.payload AND j.nonce = item.nonce);
              ELSE
                is_same := coalesce(p_tasks[first], p_tasks[1]) = item.task
                  AND coalesce(p_payloads[first], p_payloads[1]) = item.payload
                  AND coalesce(p_nonces[first], p_nonces[1]) = item.nonce;
              END IF;
              IF is_same THEN
                found_id[item.ord] := item.id;
              ELSE
                refused[item.ord] := 'id_conflict';
                refused_id[item.ord] := item.id;
              END IF;
            ELSIF item.key IS NOT NULL THEN
              IF starts_with(item.key, 'detent:debounce:') THEN
                -- Callers of a debounced task cancel each other's jobs. They take turns, so that none loses the race for ever.
                PERFORM pg_advisory_xact_lock(hashtextextended(item.tenant || '/' || item.key, 0));
              END IF;
              LOOP
                INSERT INTO detent.job_key (tenant, key, job_id, fingerprint, expires_at, until_claim)
                  VALUES (item.tenant, item.key, item.id, item.fingerprint, t + make_interval(secs => item.key_ttl),
                          item.unique_pending)
                  ON CONFLICT (tenant, key) DO NOTHING;
                is_taken := NOT FOUND;
                EXIT WHEN NOT is_taken;
                SELECT k.* INTO holder FROM detent.job_key k WHERE k.tenant = item.tenant AND k.key = item.key;
                CONTINUE WHEN NOT FOUND;
                -- A key that has expired is free. So is the key of a task that is unique while active if its job is at rest
                -- or gone.
                EXIT WHEN coalesce(holder.expires_at > t, true) AND NOT (
                  starts_with(item.key, 'detent:active:') AND array_position(made, holder.job_id) IS NULL
                  AND NOT EXISTS (SELECT 1 FROM detent.job j
                                   WHERE j.id = holder.job_id AND j.state IN ('pending', 'running')));
                -- Only a free key is locked: a claim skips locked keys, and must release all others.
                UPDATE detent.job_key k
                   SET job_id = item.id, fingerprint = item.fingerprint, until_claim = item.unique_pending,
                       expires_at = t + make_interval(secs => item.key_ttl)
                 WHERE k.tenant = item.tenant AND k.key = item.key AND k.job_id = holder.job_id
                   AND k.expires_at IS NOT DISTINCT FROM holder.expires_at;
                is_taken := NOT FOUND;
                EXIT WHEN NOT is_taken;
              END LOOP;
              IF is_taken AND holder.fingerprint = item.fingerprint THEN
                found_id[item.ord] := holder.job_id;
              ELSIF is_taken THEN
                refused[item.ord] := 'key_conflict';
                refused_id[item.ord] := holder.job_id;
              END IF;
            END IF;
            IF refused[item.ord] IS NOT NULL THEN
              refused_by[item.ord] := item.ord;
              IF item.grp IS NOT NULL THEN
                FOR friend IN 1 .. total LOOP
                  IF p_groups[friend] = item.grp AND refused[friend] IS NULL THEN
                    refused[friend] := refused[item.ord];
                    refused_id[friend] := refused_id[item.ord];
                    refused_by[friend] := item.ord;
                  END IF;
                END LOOP;
                RAISE SQLSTATE 'DT001';
              END IF;
            END IF;
          END IF;
          IF refused[item.ord] IS NULL AND found_id[item.ord] IS NULL THEN
            made[item.ord] := item.id;
          ELSE
            without := without || item.ord;
          END IF;
        END LOOP;
      END IF;
      IF cardinality(without) < total AND total - cardinality(without) <> cardinality(detent.jobs_insert(
           t, without, p_ids, p_nonces, p_tasks, p_payloads, p_queues, p_tenants, p_priorities, p_attempts_max,
           p_dead_letters, p_idempotents, p_unique_pendings, p_due_ats, p_expires_ats, p_metadatas, p_correlation_ids,
           p_traceparents, p_run_ids, p_limit_keys, p_costs, p_parent_ids)) THEN
        RAISE SQLSTATE 'DT001';
      END IF;
      EXIT;
    EXCEPTION WHEN SQLSTATE 'DT001' THEN
      NULL;
    END;
  END LOOP;
  PERFORM detent.wake_waiters(p_notify);
  RETURN QUERY
    SELECT u.ord::integer, coalesce(u.refused, 'found'), coalesce(u.refused_id, u.found_id),
           coalesce(u.refused_by, u.ord::integer)
      FROM unnest(refused, refused_id, refused_by, found_id) WITH ORDINALITY
        AS u (refused, refused_id, refused_by, found_id, ord)
     WHERE u.refused IS NOT NULL OR u.found_id IS NOT NULL
     ORDER BY u.ord;
END $$;

-- job_enqueue_one: accept one job without a key, as most are, at the least cost.
-- takes:   the columns of the job, and p_notify as job_enqueue does
-- gives:   whether it was created. If not, its lane is new or its id exists already: job_enqueue has the answer
-- locks:   new rows only
-- refuses: nothing
-- differs: SQLite needs no such function
CREATE OR REPLACE FUNCTION detent.job_enqueue_one_v1(
  p_id bigint, p_nonce bigint, p_task text, p_payload text,
  p_queue text DEFAULT 'default', p_tenant text DEFAULT '', p_priority smallint DEFAULT 0::smallint,
  p_attempts_max integer DEFAULT 4, p_dead_letter boolean DEFAULT true, p_idempotent boolean DEFAULT true,
  p_due_at timestamptz DEFAULT NULL, p_expires_at timestamptz DEFAULT NULL, p_metadata text DEFAULT NULL,
  p_correlation_id text DEFAULT NULL, p_traceparent text DEFAULT NULL, p_run_id bigint DEFAULT NULL,
  p_limit_key text DEFAULT NULL, p_notify boolean DEFAULT true
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
  t    timestamptz := detent.clock();
  lane bigint;
BEGIN
  SELECT l.id INTO lane FROM detent.lane l
   WHERE l.queue = p_queue AND l.task = p_task AND l.tenant = p_tenant AND l.priority = p_priority
     AND l.limit_key = coalesce(p_limit_key, '') AND l.version = 0;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO detent.job (id, tenant, task, queue, priority, due_at, expires_at, payload, metadata, correlation_id,
      traceparent, run_id, nonce, created_at, attempts_max, dead_letter, idempotent, limit_key)
    VALUES (p_id, p_tenant, p_task, p_queue, p_priority, greatest(p_due_at, t), p_expires_at, p_payload, p_metadata,
            p_correlation_id, p_traceparent, p_run_id, p_nonce, t, p_attempts_max, p_dead_letter, p_idempotent, p_limit_key)
    ON CONFLICT (id) DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO detent.job_span (created_at, block, first_id, last_id) VALUES (t, p_id >> 10, p_id, p_id);
  IF p_due_at > t THEN
    INSERT INTO detent.waiting (job_id, lane_id, due_at, expires_at, priority)
      VALUES (p_id, lane, p_due_at, p_expires_at, p_priority);
  ELSE
    INSERT INTO detent.ready (lane_id, ready_at, job_id, expires_at) VALUES (lane, t, p_id, p_expires_at);
  END IF;
  -- Looking whether a worker waits costs less than the call.
  IF p_notify OR EXISTS (SELECT 1 FROM detent.service s WHERE s.name = 'wake' AND s.expires_at > t) THEN
    PERFORM detent.wake_waiters(p_notify);
  END IF;
  RETURN true;
END $$;

-- Insert new jobs, all at once, each with its ready or waiting row, and create missing lanes. Takes the columns as
-- job_enqueue does, and the positions of items to leave out. Gives the ids that were inserted: existing ids are skipped.
CREATE OR REPLACE FUNCTION detent.jobs_insert(
  t timestamptz, p_without integer[], p_ids bigint[], p_nonces bigint[], p_tasks text[], p_payloads text[],
  p_queues text[], p_tenants text[], p_priorities smallint[], p_attempts_max integer[], p_dead_letters boolean[],
  p_idempotents boolean[], p_unique_pendings boolean[], p_due_ats timestamptz[], p_expires_ats timestamptz[],
  p_metadatas text[], p_correlation_ids text[], p_traceparents text[], p_run_ids bigint[], p_limit_keys text[],
  p_costs integer[], p_parent_ids bigint[]
) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
  lane    bigint;
  parent  bigint := CASE WHEN cardinality(p_parent_ids) = 1 THEN p_parent_ids[1] END;
  keyed   bigint[] := '{}';
  created bigint[];
BEGIN
  IF cardinality(p_tasks) = 1 AND cardinality(p_queues) = 1 AND cardinality(p_tenants) = 1
     AND cardinality(p_priorities) = 1 AND cardinality(p_limit_keys) = 0 THEN
    lane := detent.lane_of(p_queues[1], p_tasks[1], p_tenants[1], p_priorities[1], NULL);
  ELSE
    PERFORM detent.lane_of(k.queue, k.task, k.tenant, k.priority, k.limit_key) FROM (
      SELECT DISTINCT coalesce(u.queue, p_queues[1]) AS queue, coalesce(u.task, p_tasks[1]) AS task,
             coalesce(u.tenant, p_tenants[1]) AS tenant, coalesce(u.priority, p_priorities[1]) AS priority,
             coalesce(u.limit_key, '') AS limit_key
        FROM unnest(p_ids, p_queues, p_tasks, p_tenants, p_priorities, p_limit_keys) WITH ORDINALITY
          AS u (id, queue, task, tenant, priority, limit_key, ord)
       WHERE u.ord <> ALL (p_without)
       ORDER BY 1, 2, 3, 4, 5) k;
  END IF;
  IF true = ANY (p_unique_pendings) THEN
    keyed := ARRAY(SELECT u.id FROM unnest(p_ids, p_unique_pendings) AS u (id, is_unique)
                    WHERE coalesce(u.is_unique, p_unique_pendings[1]));
  END IF;
  WITH made AS (
    INSERT INTO detent.job (id, tenant, task, queue, priority, due_at, expires_at, payload, metadata, correlation_id,
        traceparent, run_id, nonce, created_at, attempts_max, dead_letter, idempotent, limit_key, cost, parent_id)
      SELECT u.id, coalesce(u.tenant, p_tenants[1]), coalesce(u.task, p_tasks[1]), coalesce(u.queue, p_queues[1]),
             coalesce(u.priority, p_priorities[1]), greatest(u.due_at, t), u.expires_at,
             coalesce(u.payload, p_payloads[1]), u.metadata, u.correlation_id, u.traceparent, u.run_id,
             coalesce(u.nonce, p_nonces[1]), t, coalesce(u.attempts_max, p_attempts_max[1]),
             coalesce(u.dead_letter, p_dead_letters[1]), coalesce(u.idempotent, p_idempotents[1]), u.limit_key, u.cost,
             coalesce(u.parent_id, parent)
        FROM unnest(p_ids, p_nonces, p_tasks, p_payloads, p_queues, p_tenants, p_priorities, p_attempts_max,
                    p_dead_letters, p_idempotents, p_due_ats, p_expires_ats, p_metadatas, p_correlation_ids,
                    p_traceparents, p_run_ids, p_limit_keys, p_costs, p_parent_ids) WITH ORDINALITY
          AS u (id, nonce, task, payload, queue, tenant, priority, attempts_max, dead_letter, idempotent, due_at,
                expires_at, metadata, correlation_id, traceparent, run_id, limit_key, cost, parent_id, ord)
       WHERE u.ord <> ALL (p_without)
      ON CONFLICT (id) DO NOTHING
    RETURNING id, queue, task, tenant, priority, due_at, expires_at, limit_key
  ), in_lane AS (
    SELECT m.id, m.due_at, m.expires_at, m.priority, m.id = ANY (keyed) AS holds_key,
           coalesce(lane, (SELECT l.id FROM detent.lane l WHERE l.queue = m.queue AND l.task = m.task
                              AND l.tenant = m.tenant AND l.priority = m.priority
                              AND l.limit_key = coalesce(m.limit_key, '') AND l.version = 0)) AS lane_id
      FROM made m
  ), due AS (
    INSERT INTO detent.ready (lane_id, ready_at, job_id, holds_key, expires_at)
      SELECT i.lane_id, i.due_at, i.id, i.holds_key, i.expires_at FROM in_lane i WHERE i.due_at <= t
  ), later AS (
    INSERT INTO detent.waiting (job_id, lane_id, due_at, holds_key, expires_at, priority)
      SELECT i.id, i.lane_id, i.due_at, i.holds_key, i.expires_at, i.priority FROM in_lane i WHERE i.due_at > t
  )
  SELECT coalesce(array_agg(m.id), '{}') INTO created FROM made m;
  PERFORM detent.jobs_date(t, created);
  RETURN created;
END $$;

-- Record when jobs were created, so that lists find them by time. In plpgsql, which keeps the plan.
CREATE OR REPLACE FUNCTION detent.jobs_date(t timestamptz, p_ids bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO detent.job_span (created_at, block, first_id, last_id)
    SELECT t, u.id >> 10, min(u.id), max(u.id) FROM unnest(p_ids) AS u (id) GROUP BY u.id >> 10;
END $$;

-- Insert the queue row of a pending job: ready if it is due, waiting if not.
CREATE OR REPLACE FUNCTION detent.queue_enter(j detent.job, t timestamptz, p_holds_key boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  lane bigint := detent.lane_of_job(j);
BEGIN
  IF j.due_at <= t THEN
    INSERT INTO detent.ready (lane_id, ready_at, job_id, holds_key, expires_at)
      VALUES (lane, j.due_at, j.id, p_holds_key, j.expires_at);
  ELSE
    INSERT INTO detent.waiting (job_id, lane_id, due_at, holds_key, expires_at, priority)
      VALUES (j.id, lane, j.due_at, p_holds_key, j.expires_at, j.priority);
  END IF;
END $$;
