-- Insert new jobs, all at once, each with its ready or waiting row, and the lanes that are the first of their kind.
-- Takes the columns as job_enqueue does, and the places of items to leave out. Gives the ids that were inserted: an id
-- that is there already is passed over.
CREATE OR REPLACE FUNCTION detent.jobs_insert(
  t timestamptz, p_without integer[], p_ids bigint[], p_nonces bigint[], p_tasks text[], p_payloads text[],
  p_queues text[], p_tenants text[], p_priorities smallint[], p_attempts_max integer[], p_dead_letters boolean[],
  p_idempotents boolean[], p_unique_pendings boolean[], p_due_ats timestamptz[], p_expires_ats timestamptz[],
  p_metadatas text[], p_correlation_ids text[], p_traceparents text[], p_run_ids bigint[], p_limit_keys text[],
  p_costs integer[]
) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
  lane    bigint;
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
        traceparent, run_id, nonce, created_at, attempts_max, dead_letter, idempotent, limit_key, cost)
      SELECT u.id, coalesce(u.tenant, p_tenants[1]), coalesce(u.task, p_tasks[1]), coalesce(u.queue, p_queues[1]),
             coalesce(u.priority, p_priorities[1]), greatest(u.due_at, t), u.expires_at,
             coalesce(u.payload, p_payloads[1]), u.metadata, u.correlation_id, u.traceparent, u.run_id,
             coalesce(u.nonce, p_nonces[1]), t, coalesce(u.attempts_max, p_attempts_max[1]),
             coalesce(u.dead_letter, p_dead_letters[1]), coalesce(u.idempotent, p_idempotents[1]), u.limit_key, u.cost
        FROM unnest(p_ids, p_nonces, p_tasks, p_payloads, p_queues, p_tenants, p_priorities, p_attempts_max,
                    p_dead_letters, p_idempotents, p_due_ats, p_expires_ats, p_metadatas, p_correlation_ids,
                    p_traceparents, p_run_ids, p_limit_keys, p_costs) WITH ORDINALITY
          AS u (id, nonce, task, payload, queue, tenant, priority, attempts_max, dead_letter, idempotent, due_at,
                expires_at, metadata, correlation_id, traceparent, run_id, limit_key, cost, ord)
       WHERE u.ord <> ALL (p_without)
      ON CONFLICT (id) DO NOTHING
    RETURNING id, queue, task, tenant, priority, due_at, expires_at, limit_key
  ), in_lane AS (
    SELECT m.id, m.due_at, m.expires_at, m.priority, m.id = ANY (keyed) AS holds_key,
           coalesce(lane, (SELECT l.id FROM detent.lane l WHERE l.queue = m.queue AND l.task = m.task
                              AND l.tenant = m.tenant AND l.priority = m.priority
                              AND l.limit_key = coalesce(m.limit_key, ''))) AS lane_id
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
