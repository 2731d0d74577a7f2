-- Take ready rows for a claim: delete them, and return their jobs. Takes what job_claim takes, and jobs to leave out (null:
-- none).
--
-- If up to 100 lanes have ready jobs, all of them are read together. If there are more, it reads as many lanes as the claim has
-- room for, beginning after after_lane, and all other lanes of their tenants that have the same priority or a higher one.
CREATE OR REPLACE FUNCTION detent.claim_rows(
  p_queues text[], p_tasks text[], p_limit integer, p_tenants text[], p_after_tenant text, p_skip bigint[],
  p_bound_lanes bigint[], p_bound_ats timestamptz[], p_bound_ids bigint[], p_after_lane bigint,
  p_version_tasks text[], p_versions integer[],
  OUT ids bigint[], OUT keyed bigint[], OUT bound_lanes bigint[], OUT bound_ats timestamptz[], OUT bound_ids bigint[],
  OUT after_lane bigint, OUT limited boolean, OUT tenants_met integer
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  t         timestamptz := detent.clock();
  groups    integer[];
  places     bigint[];
  whole     boolean;
  lanes     bigint[];
  floors_at timestamptz[];
  floors_id bigint[];
  tenants   integer;
  taken     record;
  bounded   boolean := coalesce(cardinality(p_bound_lanes), 0) > 0;
BEGIN
  ids := '{}';
  keyed := '{}';
  tenants_met := 0;
  after_lane := p_after_lane;
  groups := ARRAY(
    SELECT g.id FROM detent.lane_group g
     WHERE g.task = ANY (p_tasks) AND (p_queues IS NULL OR g.queue = ANY (p_queues))
       AND NOT EXISTS (SELECT 1 FROM detent.queue q WHERE q.name = g.queue AND q.paused_at IS NOT NULL)
       AND (g.version = 0 OR p_versions IS NULL
            OR EXISTS (SELECT 1 FROM unnest(p_version_tasks, p_versions) AS v (task, version)
                        WHERE v.task = g.task AND v.version = g.version))
     ORDER BY g.id);
  limited := EXISTS (
    SELECT 1 FROM detent.limit_member m
     WHERE (m.kind = 'task' AND m.name = ANY (p_tasks)) OR (m.kind = 'queue' AND (p_queues IS NULL OR m.name = ANY (p_queues))));
  IF limited THEN
    SELECT c.ids, c.keyed, c.after_lane INTO ids, keyed, after_lane
      FROM detent.claim_within_limits(groups, p_queues, p_tasks, p_tenants, p_limit, p_after_tenant, p_skip, p_after_lane) c;
    RETURN;
  END IF;
  -- First above the bounds; if that was not enough, without them. If there are many lanes, further rounds follow.
  FOR round IN 1 .. 16 LOOP
    IF p_tenants IS NULL THEN
      SELECT r.lanes, r.all_of_them INTO places, whole
        FROM detent.lanes_ready(groups, after_lane, greatest(p_limit - cardinality(ids), 100), CASE WHEN bounded THEN p_bound_lanes END,
                                p_bound_ats, p_bound_ids) r;
    ELSE
      places := ARRAY(SELECT l.id FROM detent.lane l WHERE l.tenant COLLATE "C" = ANY (p_tenants) AND (l.id >> 32)::integer = ANY (groups));
      whole := true;
    END IF;
    IF whole THEN
      after_lane := NULL;
    ELSE
      places := places[1 : p_limit - cardinality(ids)];
      after_lane := places[cardinality(places)];
    END IF;
    IF NOT whole THEN
      -- Other lanes of these tenants: jobs there go first if their priority is higher, or if they are older.
      places := ARRAY(
        SELECT u.id FROM unnest(places) AS u (id)
         UNION
        SELECT o.id
          FROM (SELECT n.tenant COLLATE "C" AS tenant, min(n.priority) AS priority FROM unnest(places) AS u (id)
                 CROSS JOIN LATERAL (SELECT k.tenant, k.priority FROM detent.lane k WHERE k.id = u.id OFFSET 0) n
                 GROUP BY 1) x
         CROSS JOIN LATERAL (SELECT n.id FROM detent.lane n WHERE n.tenant COLLATE "C" = x.tenant AND n.priority >= x.priority
                              ORDER BY n.priority DESC, n.id LIMIT 100) o
         WHERE (o.id >> 32)::integer = ANY (groups));
    END IF;
    SELECT array_agg(l.id), array_agg(coalesce(b.at, '-infinity')), array_agg(coalesce(b.id, 0)), count(DISTINCT l.tenant COLLATE "C")
      INTO lanes, floors_at, floors_id, tenants
      FROM unnest(places) AS u (id)
     CROSS JOIN LATERAL (SELECT n.id, n.tenant FROM detent.lane n WHERE n.id = u.id OFFSET 0) l
      LEFT JOIN unnest(p_bound_lanes, p_bound_ats, p_bound_ids) AS b (lane_id, at, id) ON bounded AND b.lane_id = l.id;
    tenants_met := CASE WHEN whole THEN greatest(tenants_met, tenants) ELSE 2 END;
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
        FROM detent.claim_from_lanes(lanes, floors_at, floors_id, tenants, p_limit - cardinality(ids), p_after_tenant,
                                     whole AND cardinality(lanes) <= 100, p_skip) c;
    END IF;
    ids := ids || taken.ids;
    keyed := keyed || taken.keyed;
    -- With many lanes, after_lane keeps the next claim from reading dead rows again.
    IF cardinality(lanes) <= 16 THEN
      bound_lanes := bound_lanes || taken.lanes;
      bound_ats := bound_ats || taken.ats;
      bound_ids := bound_ids || taken.bound_ids;
    END IF;
    EXIT WHEN cardinality(ids) >= p_limit OR (whole AND NOT bounded);
    bounded := false;
  END LOOP;
END $$;
