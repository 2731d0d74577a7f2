-- job_claim: hand ready jobs to one caller, under one new lease.
-- takes:   the lease, the worker's name, which queues, tasks and tenants (null is any), how many, for how many seconds,
--          and after which tenant the turns begin. Bounds: how far the caller has emptied lanes; a claim that comes back
--          short looks below them too, so a bound may delay a job and never hides it
-- gives:   the jobs in the order of the claim. To a caller that gives bounds, and gets all it asked for without limits, one
--          row comes first that has no job: how far this claim has come in its lanes
-- locks:   exactly the ready rows it takes, then their jobs; whatever others hold is passed over. Where limits are on any
--          of these tasks or queues, the rows of those first: claims under one limit come one after the other
-- refuses: nothing
-- differs: SQLite has one writer, so nothing is locked there, and no dead rows, so it needs no bounds
CREATE OR REPLACE FUNCTION detent.job_claim_v1(
  p_lease_id bigint, p_worker text, p_queues text[], p_tasks text[], p_limit integer, p_lease double precision,
  p_tenants text[] DEFAULT NULL, p_after_tenant text DEFAULT NULL,
  p_bound_lanes integer[] DEFAULT NULL, p_bound_ats timestamptz[] DEFAULT NULL, p_bound_ids bigint[] DEFAULT NULL
) RETURNS TABLE (
  job_id bigint, attempt integer, task text, payload text, tenant text, queue text, metadata text, correlation_id text,
  traceparent text, run_id bigint, spared integer, attempts_max integer, bound_lanes integer[], bound_ats timestamptz[],
  bound_ids bigint[]
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
  t         timestamptz := detent.clock();
  lanes     integer[];
  floors_at timestamptz[];
  floors_id bigint[];
  tenants   integer;
  tenants_met integer := 0;
  ids       bigint[] := '{}';
  keyed     bigint[] := '{}';
  taken     record;
  bounded   boolean := coalesce(cardinality(p_bound_lanes), 0) > 0;
  limited   boolean := EXISTS (
    SELECT 1 FROM detent.limit_member m
     WHERE (m.kind = 'task' AND m.name = ANY (p_tasks)) OR (m.kind = 'queue' AND (p_queues IS NULL OR m.name = ANY (p_queues))));
BEGIN
  IF limited THEN
    SELECT c.ids, c.keyed INTO ids, keyed
      FROM detent.claim_within_limits(p_queues, p_tasks, p_tenants, p_limit, p_after_tenant) c;
    t := detent.clock();
  END IF;
  -- Twice at most: above the bounds, then, if that was not enough, without them.
  WHILE NOT limited LOOP
    SELECT array_agg(l.id), array_agg(coalesce(b.at, '-infinity')), array_agg(coalesce(b.id, 0)), count(DISTINCT l.tenant)
      INTO lanes, floors_at, floors_id, tenants
      FROM detent.lane l
      LEFT JOIN unnest(p_bound_lanes, p_bound_ats, p_bound_ids) AS b (lane_id, at, id) ON bounded AND b.lane_id = l.id
     WHERE l.task = ANY (p_tasks)
       AND (p_queues IS NULL OR l.queue = ANY (p_queues))
       AND (p_tenants IS NULL OR l.tenant = ANY (p_tenants))
       AND NOT EXISTS (SELECT 1 FROM detent.queue q WHERE q.name = l.queue AND q.paused_at IS NOT NULL);
    tenants_met := greatest(tenants_met, tenants);
    IF cardinality(lanes) = 1 THEN
      WITH gone AS (
        DELETE FROM detent.ready WHERE ctid = ANY (ARRAY(
          SELECT r.ctid FROM detent.ready r
           WHERE r.lane_id = lanes[1] AND (r.ready_at, r.job_id) > (floors_at[1], floors_id[1])
             AND (r.expires_at IS NULL OR r.expires_at > t)
           ORDER BY r.ready_at, r.job_id LIMIT p_limit - cardinality(ids) FOR UPDATE SKIP LOCKED))
        RETURNING ready_at, job_id, holds_key
      )
      SELECT coalesce(array_agg(g.job_id), '{}') AS ids,
             coalesce(array_agg(g.job_id) FILTER (WHERE g.holds_key), '{}') AS keyed,
             (array_agg(lanes[1]))[1:1] AS lanes,
             (array_agg(g.ready_at))[1:1] AS ats,
             (array_agg(g.job_id))[1:1] AS bound_ids
        INTO taken FROM (SELECT * FROM gone ORDER BY ready_at DESC, job_id DESC) g;
    ELSE
      SELECT c.ids, c.keyed, c.lanes, c.ats, c.bound_ids INTO taken
        FROM detent.claim_from_lanes(lanes, floors_at, floors_id, tenants, p_limit - cardinality(ids), p_after_tenant) c;
    END IF;
    ids := ids || taken.ids;
    keyed := keyed || taken.keyed;
    bound_lanes := bound_lanes || taken.lanes;
    bound_ats := bound_ats || taken.ats;
    bound_ids := bound_ids || taken.bound_ids;
    EXIT WHEN NOT bounded OR cardinality(ids) >= p_limit;
    bounded := false;
  END LOOP;
  IF cardinality(ids) = 0 THEN
    RETURN;
  END IF;
  IF cardinality(keyed) > 0 THEN
    -- One that is locked is expired and about to be somebody else's.
    DELETE FROM detent.job_key WHERE ctid = ANY (ARRAY(
      SELECT k.ctid FROM detent.job_key k WHERE k.job_id = ANY (keyed) AND k.until_claim FOR UPDATE SKIP LOCKED));
  END IF;
  IF p_bound_lanes IS NOT NULL AND cardinality(ids) = p_limit AND NOT limited THEN
    RETURN NEXT;
  END IF;
  RETURN QUERY
    WITH claimed AS (
      UPDATE detent.job
         SET state = 'running', attempt = attempt + 1, lease_id = p_lease_id, started_at = NULL, committed_at = NULL,
             leased_at = greatest(t, due_at, leased_at, started_at, finished_at, cancel_requested_at)
       WHERE id = ANY (ids) AND state = 'pending'
      RETURNING id, attempt, task, payload, tenant, queue, metadata, correlation_id, traceparent, run_id, spared,
                attempts_max, priority, due_at
    ), turns AS (
      -- A tenant by itself need not be counted out.
      SELECT c.*, 0 AS turn FROM claimed c WHERE tenants_met = 1
      UNION ALL
      SELECT c.*, row_number() OVER (PARTITION BY c.tenant ORDER BY c.priority DESC, c.due_at, c.id) FROM claimed c
       WHERE tenants_met <> 1
    ), in_order AS MATERIALIZED (
      SELECT * FROM turns u
       ORDER BY u.turn, coalesce(u.tenant COLLATE "C" <= p_after_tenant, false), u.tenant COLLATE "C", u.priority DESC, u.due_at,
                u.id
    ), leased AS (
      INSERT INTO detent.lease (id, worker, leased_at, expires_at, job_ids)
        SELECT p_lease_id, p_worker, t, t + make_interval(secs => p_lease), array_agg(o.id) FROM in_order o
        HAVING count(*) > 0
    )
    SELECT o.id, o.attempt, o.task, o.payload, o.tenant, o.queue, o.metadata, o.correlation_id, o.traceparent, o.run_id,
           o.spared, o.attempts_max, NULL::integer[], NULL::timestamptz[], NULL::bigint[]
      FROM in_order o;
END $$;
