-- Choose which ready rows of these lanes to take, within the room of each limit. Nothing is locked or changed.
--
-- Tenants take turns, one job each: the tenant's first job for which every limit has room. A lane names its two limits by
-- their places in p_keys and p_rooms; 0 means none.
--
-- A job that costs more than one token takes them from the limit of its task; the limit of its queue counts it as one. If the
-- tokens are not there yet, no other job passes it under that limit: the tokens are saved for it. So no job waits for ever
-- behind cheaper ones. A job that costs more than the bucket can hold starts when the bucket is full.
CREATE OR REPLACE FUNCTION detent.claim_choose(
  p_lanes bigint[], p_tenants text[], p_priorities smallint[], p_task_ns integer[], p_queue_ns integer[], p_keys text[],
  p_rooms integer[], p_limit integer, p_after_tenant text, p_portion integer,
  p_skip bigint[], t timestamptz,
  OUT places tid[], OUT jobs bigint[], OUT task_ns integer[], OUT queue_ns integer[], OUT costs integer[]
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  found  record;
  at     integer[];
  took   boolean := true;
  chosen integer[] := '{}';
  n      integer;
  task_n integer;
  tokens double precision[];
  bursts double precision[];
BEGIN
  -- A tenant's jobs stand together in their order; firsts and lasts say where each tenant's begin and end.
  WITH candidate AS (
    SELECT r.ctid AS place, r.job_id, u.task_n, u.queue_n, u.priority, r.ready_at,
           coalesce((SELECT j.cost FROM detent.job j WHERE j.id = r.job_id), 1) AS cost, dense_rank() OVER (
             ORDER BY coalesce(u.tenant COLLATE "C" <= p_after_tenant, false), u.tenant COLLATE "C") AS tenant_n
      FROM unnest(p_lanes, p_tenants, p_priorities, p_task_ns, p_queue_ns)
        AS u (lane_id, tenant, priority, task_n, queue_n)
     CROSS JOIN LATERAL (
       SELECT q.ctid, q.ready_at, q.job_id FROM detent.ready q
        WHERE q.lane_id = u.lane_id AND (q.expires_at IS NULL OR q.expires_at > t)
          AND (p_skip IS NULL OR q.job_id <> ALL (p_skip))
        ORDER BY q.ready_at, q.job_id LIMIT least(p_portion, p_rooms[u.task_n], p_rooms[u.queue_n])) r
  ), in_order AS (
    SELECT c.*, row_number() OVER (ORDER BY c.tenant_n, c.priority DESC, c.ready_at, c.job_id) AS nth FROM candidate c
  ), tenants AS (
    SELECT o.tenant_n, min(o.nth)::integer AS first, max(o.nth)::integer AS last FROM in_order o GROUP BY o.tenant_n
  )
  SELECT array_agg(o.place ORDER BY o.nth) AS places, array_agg(o.job_id ORDER BY o.nth) AS jobs,
         array_agg(o.task_n ORDER BY o.nth) AS task_ns, array_agg(o.queue_n ORDER BY o.nth) AS queue_ns,
         array_agg(o.cost ORDER BY o.nth) AS costs, max(o.cost) AS cost_max,
         (SELECT array_agg(s.first ORDER BY s.tenant_n) FROM tenants s) AS firsts,
         (SELECT array_agg(s.last ORDER BY s.tenant_n) FROM tenants s) AS lasts
    INTO found FROM in_order o;
  at := coalesce(found.firsts, '{}');
  IF found.cost_max > 1 THEN
    SELECT array_agg(b.tokens ORDER BY u.n), array_agg(b.burst ORDER BY u.n) INTO tokens, bursts
      FROM unnest(p_keys) WITH ORDINALITY AS u (key, n)
      LEFT JOIN LATERAL (SELECT detent.limit_tokens(l, t) + 1e-6 AS tokens, l.burst FROM detent.rate_limit l
                          WHERE l.key = u.key AND l.rate IS NOT NULL) b ON true;
  END IF;
  WHILE took AND cardinality(chosen) < p_limit LOOP
    took := false;
    FOR tenant IN 1 .. cardinality(at) LOOP
      EXIT WHEN cardinality(chosen) >= p_limit;
      WHILE at[tenant] <= found.lasts[tenant] LOOP
        n := at[tenant];
        at[tenant] := n + 1;
        task_n := found.task_ns[n];
        IF coalesce(p_rooms[task_n], 1) > 0 AND coalesce(p_rooms[found.queue_ns[n]], 1) > 0 THEN
          IF tokens[task_n] < least(found.costs[n], bursts[task_n]) THEN
            p_rooms[task_n] := 0;
            CONTINUE;
          END IF;
          chosen := chosen || n;
          took := true;
          IF task_n > 0 THEN
            p_rooms[task_n] := p_rooms[task_n] - 1;
            IF tokens[task_n] IS NOT NULL THEN
              tokens[task_n] := tokens[task_n] - found.costs[n];
              p_rooms[task_n] := least(p_rooms[task_n], floor(tokens[task_n]));
            END IF;
          END IF;
          IF found.queue_ns[n] > 0 AND found.queue_ns[n] <> task_n THEN
            p_rooms[found.queue_ns[n]] := p_rooms[found.queue_ns[n]] - 1;
            IF tokens[found.queue_ns[n]] IS NOT NULL THEN
              tokens[found.queue_ns[n]] := tokens[found.queue_ns[n]] - 1;
            END IF;
          END IF;
          EXIT;
        END IF;
      END LOOP;
    END LOOP;
  END LOOP;
  SELECT coalesce(array_agg(found.places[u.n] ORDER BY u.nth), '{}'), coalesce(array_agg(found.jobs[u.n] ORDER BY u.nth), '{}'),
         coalesce(array_agg(found.task_ns[u.n] ORDER BY u.nth), '{}'),
         coalesce(array_agg(found.queue_ns[u.n] ORDER BY u.nth), '{}'), coalesce(array_agg(found.costs[u.n] ORDER BY u.nth), '{}')
    INTO places, jobs, task_ns, queue_ns, costs
    FROM unnest(chosen) WITH ORDINALITY AS u (n, nth);
END $$;
