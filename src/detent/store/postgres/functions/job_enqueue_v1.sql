-- job_enqueue: accept jobs in state pending.
-- takes:   one array per column. One that is the same for all may be given with a single element, one that is null for
--          all may be left empty. p_notify: wake whoever may wait, instead of looking whether somebody does
-- gives:   a row for each item that was not simply created: found (job_id stands for it), id_conflict, key_conflict
--          (job_id holds it); cause is the item that was refused, where it took its group with it
-- locks:   new rows only. Who asks for a key that an open transaction has taken waits for its end.
-- refuses: item by item, and all items of a group together
-- differs: SQLite has one writer and need not wait for racers
CREATE OR REPLACE FUNCTION detent.job_enqueue_v1(
  p_ids bigint[], p_nonces bigint[], p_tasks text[], p_payloads text[],
  p_queues text[] DEFAULT '{default}', p_tenants text[] DEFAULT '{""}', p_priorities smallint[] DEFAULT '{0}',
  p_attempts_max integer[] DEFAULT '{4}', p_dead_letters boolean[] DEFAULT '{true}',
  p_idempotents boolean[] DEFAULT '{true}', p_unique_pendings boolean[] DEFAULT '{false}',
  p_due_ats timestamptz[] DEFAULT '{}', p_expires_ats timestamptz[] DEFAULT '{}', p_metadatas text[] DEFAULT '{}',
  p_correlation_ids text[] DEFAULT '{}', p_traceparents text[] DEFAULT '{}', p_run_ids bigint[] DEFAULT '{}',
  p_limit_keys text[] DEFAULT '{}', p_keys text[] DEFAULT '{}', p_fingerprints text[] DEFAULT '{}',
  p_key_ttls double precision[] DEFAULT '{}', p_groups bigint[] DEFAULT '{}',
  p_notify boolean DEFAULT true
) RETURNS TABLE (ord integer, answer text, job_id bigint, cause integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
  t          timestamptz := detent.clock();
  total      integer := cardinality(p_ids);
  lane       integer;
  new_lanes  boolean;
  made       bigint[];
  item       record;
  known      record;
  holder     detent.job_key;
  was_made   boolean;
  found_id   bigint[] := array_fill(NULL::bigint, ARRAY[total]);
  refused    text[] := array_fill(NULL::text, ARRAY[total]);
  refused_id bigint[] := array_fill(NULL::bigint, ARRAY[total]);
  refused_by integer[] := array_fill(NULL::integer, ARRAY[total]);
BEGIN
  IF total = 0 THEN
    RETURN;
  END IF;
  IF cardinality(p_tasks) = 1 AND cardinality(p_queues) = 1 AND cardinality(p_tenants) = 1
     AND cardinality(p_priorities) = 1 THEN
    SELECT l.id INTO lane FROM detent.lane l
     WHERE l.queue = p_queues[1] AND l.task = p_tasks[1] AND l.tenant = p_tenants[1] AND l.priority = p_priorities[1];
    new_lanes := NOT FOUND;
  ELSE
    new_lanes := EXISTS (
      SELECT 1 FROM unnest(p_queues, p_tasks, p_tenants, p_priorities) AS u (queue, task, tenant, priority)
       WHERE NOT EXISTS (
         SELECT 1 FROM detent.lane l
          WHERE l.queue = coalesce(u.queue, p_queues[1]) AND l.task = coalesce(u.task, p_tasks[1])
            AND l.tenant = coalesce(u.tenant, p_tenants[1]) AND l.priority = coalesce(u.priority, p_priorities[1])));
  END IF;

  IF cardinality(p_keys) = 0 AND cardinality(p_groups) = 0 AND true <> ALL (p_unique_pendings)
     AND NOT (new_lanes AND EXISTS (SELECT 1 FROM detent.job j WHERE j.id = ANY (p_ids))) THEN
    IF new_lanes THEN
      PERFORM detent.lane_of(k.queue, k.task, k.tenant, k.priority) FROM (
        SELECT DISTINCT coalesce(u.queue, p_queues[1]) AS queue, coalesce(u.task, p_tasks[1]) AS task,
               coalesce(u.tenant, p_tenants[1]) AS tenant, coalesce(u.priority, p_priorities[1]) AS priority
          FROM unnest(p_queues, p_tasks, p_tenants, p_priorities) AS u (queue, task, tenant, priority)
         ORDER BY 1, 2, 3, 4) k;
    END IF;
    -- Nothing to judge but ids: all at once, and a second look only where an id was there already.
    WITH created AS (
      INSERT INTO detent.job (id, tenant, task, queue, priority, due_at, expires_at, payload, metadata, correlation_id,
          traceparent, run_id, nonce, created_at, attempts_max, dead_letter, idempotent, limit_key)
        SELECT u.id, coalesce(u.tenant, p_tenants[1]), coalesce(u.task, p_tasks[1]), coalesce(u.queue, p_queues[1]),
               coalesce(u.priority, p_priorities[1]), greatest(u.due_at, t), u.expires_at,
               coalesce(u.payload, p_payloads[1]), u.metadata, u.correlation_id, u.traceparent, u.run_id,
               coalesce(u.nonce, p_nonces[1]), t, coalesce(u.attempts_max, p_attempts_max[1]),
               coalesce(u.dead_letter, p_dead_letters[1]), coalesce(u.idempotent, p_idempotents[1]), u.limit_key
          FROM unnest(p_ids, p_nonces, p_tasks, p_payloads, p_queues, p_tenants, p_priorities, p_attempts_max,
                      p_dead_letters, p_idempotents, p_due_ats, p_expires_ats, p_metadatas, p_correlation_ids,
                      p_traceparents, p_run_ids, p_limit_keys)
            AS u (id, nonce, task, payload, queue, tenant, priority, attempts_max, dead_letter, idempotent, due_at,
                  expires_at, metadata, correlation_id, traceparent, run_id, limit_key)
        ON CONFLICT (id) DO NOTHING
      RETURNING id, queue, task, tenant, priority, due_at, expires_at
    ), in_lane AS (
      SELECT c.id, c.due_at, c.expires_at, c.priority,
             coalesce(lane, (SELECT l.id FROM detent.lane l WHERE l.queue = c.queue AND l.task = c.task
                                AND l.tenant = c.tenant AND l.priority = c.priority)) AS lane_id
        FROM created c
    ), due AS (
      INSERT INTO detent.ready (lane_id, ready_at, job_id, expires_at)
        SELECT i.lane_id, i.due_at, i.id, i.expires_at FROM in_lane i WHERE i.due_at <= t
    ), later AS (
      INSERT INTO detent.waiting (job_id, lane_id, due_at, expires_at, priority)
        SELECT i.id, i.lane_id, i.due_at, i.expires_at, i.priority FROM in_lane i WHERE i.due_at > t
    )
    SELECT array_agg(c.id) INTO made FROM created c;
    PERFORM detent.wake_waiters(p_notify);
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
    RETURN;
  END IF;

  -- Keys and groups are judged item by item. What upsets the judgement of items before it begins the round anew:
  -- a refused item that takes its group along, and an id that somebody else has just used.
  LOOP
    BEGIN
      found_id := array_fill(NULL::bigint, ARRAY[total]);
      FOR item IN
        SELECT u.ord::integer AS ord, u.id, coalesce(u.nonce, p_nonces[1]) AS nonce, coalesce(u.task, p_tasks[1]) AS task,
               coalesce(u.payload, p_payloads[1]) AS payload, coalesce(u.queue, p_queues[1]) AS queue,
               coalesce(u.tenant, p_tenants[1]) AS tenant, coalesce(u.priority, p_priorities[1]) AS priority,
               coalesce(u.attempts_max, p_attempts_max[1]) AS attempts_max,
               coalesce(u.dead_letter, p_dead_letters[1]) AS dead_letter,
               coalesce(u.idempotent, p_idempotents[1]) AS idempotent,
               coalesce(u.unique_pending, p_unique_pendings[1]) AS unique_pending,
               greatest(u.due_at, t) AS due_at, u.expires_at, u.metadata, u.correlation_id, u.traceparent, u.run_id,
               u.limit_key, u.key, coalesce(u.fingerprint, p_fingerprints[1]) AS fingerprint, u.key_ttl, u.grp
          FROM unnest(p_ids, p_nonces, p_tasks, p_payloads, p_queues, p_tenants, p_priorities, p_attempts_max,
                      p_dead_letters, p_idempotents, p_unique_pendings, p_due_ats, p_expires_ats, p_metadatas,
                      p_correlation_ids, p_traceparents, p_run_ids, p_limit_keys, p_keys, p_fingerprints, p_key_ttls,
                      p_groups) WITH ORDINALITY
            AS u (id, nonce, task, payload, queue, tenant, priority, attempts_max, dead_letter, idempotent,
                  unique_pending, due_at, expires_at, metadata, correlation_id, traceparent, run_id, limit_key, key,
                  fingerprint, key_ttl, grp, ord)
         ORDER BY u.ord
      LOOP
        CONTINUE WHEN refused[item.ord] IS NOT NULL;
        SELECT j.task, j.payload, j.nonce INTO known FROM detent.job j WHERE j.id = item.id;
        IF FOUND AND (known.task, known.payload, known.nonce) = (item.task, item.payload, item.nonce) THEN
          found_id[item.ord] := item.id;
          CONTINUE;
        ELSIF FOUND THEN
          refused[item.ord] := 'id_conflict';
          refused_id[item.ord] := item.id;
        ELSIF item.key IS NOT NULL THEN
          LOOP
            INSERT INTO detent.job_key AS k (tenant, key, job_id, fingerprint, expires_at, until_claim)
              VALUES (item.tenant, item.key, item.id, item.fingerprint, t + make_interval(secs => item.key_ttl),
                      item.unique_pending)
              ON CONFLICT (tenant, key) DO UPDATE
                SET job_id = excluded.job_id, fingerprint = excluded.fingerprint, expires_at = excluded.expires_at,
                    until_claim = excluded.until_claim
                WHERE k.expires_at <= t;
            was_made := FOUND;
            EXIT WHEN was_made;
            SELECT k.* INTO holder FROM detent.job_key k
             WHERE k.tenant = item.tenant AND k.key = item.key AND (k.expires_at IS NULL OR k.expires_at > t);
            EXIT WHEN FOUND;
          END LOOP;
          IF NOT was_made AND holder.fingerprint = item.fingerprint THEN
            found_id[item.ord] := holder.job_id;
            CONTINUE;
          ELSIF NOT was_made THEN
            refused[item.ord] := 'key_conflict';
            refused_id[item.ord] := holder.job_id;
          END IF;
        END IF;
        IF refused[item.ord] IS NOT NULL THEN
          refused_by[item.ord] := item.ord;
          CONTINUE WHEN item.grp IS NULL;
          FOR friend IN 1 .. total LOOP
            IF p_groups[friend] = item.grp AND refused[friend] IS NULL THEN
              refused[friend] := refused[item.ord];
              refused_id[friend] := refused_id[item.ord];
              refused_by[friend] := item.ord;
            END IF;
          END LOOP;
          RAISE SQLSTATE 'DT001';
        END IF;
        INSERT INTO detent.job (id, tenant, task, queue, priority, due_at, expires_at, payload, metadata, correlation_id,
            traceparent, run_id, nonce, created_at, attempts_max, dead_letter, idempotent, limit_key)
          VALUES (item.id, item.tenant, item.task, item.queue, item.priority, item.due_at, item.expires_at, item.payload,
                  item.metadata, item.correlation_id, item.traceparent, item.run_id, item.nonce, t, item.attempts_max,
                  item.dead_letter, item.idempotent, item.limit_key)
          ON CONFLICT (id) DO NOTHING;
        IF NOT FOUND THEN
          RAISE SQLSTATE 'DT001';
        END IF;
        lane := detent.lane_of(item.queue, item.task, item.tenant, item.priority);
        IF item.due_at <= t THEN
          INSERT INTO detent.ready (lane_id, ready_at, job_id, holds_key, expires_at)
            VALUES (lane, item.due_at, item.id, item.unique_pending, item.expires_at);
        ELSE
          INSERT INTO detent.waiting (job_id, lane_id, due_at, holds_key, expires_at, priority)
            VALUES (item.id, lane, item.due_at, item.unique_pending, item.expires_at, item.priority);
        END IF;
      END LOOP;
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
