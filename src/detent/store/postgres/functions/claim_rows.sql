-- Take ready rows for a claim: delete them, and give the jobs they stand for. Takes what job_claim takes, and jobs to leave
-- out (null: none). Bounds are those of job_claim.
CREATE OR REPLACE FUNCTION detent.claim_rows(
  p_queues text[], p_tasks text[], p_limit integer, p_tenants text[], p_after_tenant text, p_skip bigint[],
  p_bound_lanes integer[], p_bound_ats timestamptz[], p_bound_ids bigint[],
  OUT ids bigint[], OUT keyed bigint[], OUT bound_lanes integer[], OUT bound_ats timestamptz[], OUT bound_ids bigint[],
  OUT limited boolean, OUT tenants_met integer
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  t         timestamptz := detent.clock();
  lanes     integer[];
  floors_at timestamptz[];
  floors_id bigint[];
  tenants   integer;
  taken     record;
  bounded   boolean := coalesce(cardinality(p_bound_lanes), 0) > 0;
BEGIN
  ids := '{}';
  keyed := '{}';
  tenants_met := 0;
  limited := EXISTS (
    SELECT 1 FROM detent.limit_member m
     WHERE (m.kind = 'task' AND m.name = ANY (p_tasks)) OR (m.kind = 'queue' AND (p_queues IS NULL OR m.name = ANY (p_queues))));
  IF limited THEN
    SELECT c.ids, c.keyed INTO ids, keyed
      FROM detent.claim_within_limits(p_queues, p_tasks, p_tenants, p_limit, p_after_tenant, p_skip) c;
    RETURN;
  END IF;
  -- Twice at most: above the bounds, then, if that was not enough, without them.
  LOOP
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
             AND (p_skip IS NULL OR r.job_id <> ALL (p_skip))
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
        FROM detent.claim_from_lanes(
          lanes, floors_at, floors_id, tenants, p_limit - cardinality(ids), p_after_tenant, p_skip) c;
    END IF;
    ids := ids || taken.ids;
    keyed := keyed || taken.keyed;
    bound_lanes := bound_lanes || taken.lanes;
    bound_ats := bound_ats || taken.ats;
    bound_ids := bound_ids || taken.bound_ids;
    EXIT WHEN NOT bounded OR cardinality(ids) >= p_limit;
    bounded := false;
  END LOOP;
END $$;
