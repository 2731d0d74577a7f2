-- Take ready rows out of several lanes, tenants in turn. It reads without locks, and then locks exactly what it takes.
--
-- Each round reads an equal number of rows per tenant from every lane that may have more. The first k jobs of a tenant are
-- among the first k of its lanes, so the number of rows read is bounded by the lanes and the limit. If there are many lanes
-- (not p_exact), it reads only as many rows of each as are enough together. A lane that had fewer is finished. The next round
-- continues after the rows that were read, so it meets each row that another transaction has locked only once. It also returns
-- how far it has come in each lane; if a lane took part in several rounds, the last round counts. Expired rows are left to
-- job_expire.
CREATE OR REPLACE FUNCTION detent.claim_from_lanes(
  p_lanes bigint[], p_floors_at timestamptz[], p_floors_id bigint[], p_tenants integer, p_limit integer,
  p_after_tenant text, p_exact boolean, p_skip bigint[],
  OUT ids bigint[], OUT keyed bigint[], OUT lanes bigint[], OUT ats timestamptz[], OUT bound_ids bigint[]
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  t       timestamptz := detent.clock();
  missing integer := p_limit;
  share   integer;
  portion integer;
  step    record;
BEGIN
  ids := '{}';
  keyed := '{}';
  FOR round IN 1 .. 16 LOOP
    EXIT WHEN missing <= 0 OR coalesce(cardinality(p_lanes), 0) = 0;
    share := ceil(missing::numeric / greatest(p_tenants, 1));
    portion := CASE WHEN p_exact THEN share ELSE least(share, ceil(missing::numeric / cardinality(p_lanes))) END;
    WITH seen AS MATERIALIZED (
      SELECT r.ctid AS place, r.ready_at, r.job_id, l.id AS lane_id, l.tenant, l.priority, f.at, f.id
        FROM unnest(p_lanes, p_floors_at, p_floors_id) AS f (lane_id, at, id)
       CROSS JOIN LATERAL (SELECT n.id, n.tenant, n.priority FROM detent.lane n WHERE n.id = f.lane_id OFFSET 0) l
       CROSS JOIN LATERAL (
         SELECT q.ctid, q.ready_at, q.job_id FROM detent.ready q
          WHERE q.lane_id = f.lane_id AND (q.ready_at, q.job_id) > (f.at, f.id)
            AND (q.expires_at IS NULL OR q.expires_at > t)
            AND (p_skip IS NULL OR q.job_id <> ALL (p_skip))
          ORDER BY q.ready_at, q.job_id LIMIT portion) r
    ), ranked AS (
      SELECT s.*, row_number() OVER (PARTITION BY s.tenant COLLATE "C" ORDER BY s.priority DESC, s.ready_at, s.job_id) AS turn
        FROM seen s
    ), placed AS MATERIALIZED (
      SELECT k.*, k.turn <= share AND row_number() OVER (
               ORDER BY k.turn, coalesce(k.tenant COLLATE "C" <= p_after_tenant, false), k.tenant COLLATE "C") <= missing
               AS chosen
        FROM ranked k
    ), gone AS (
      DELETE FROM detent.ready WHERE ctid = ANY (ARRAY(
        SELECT r.ctid FROM detent.ready r WHERE r.ctid = ANY (ARRAY(SELECT p.place FROM placed p WHERE p.chosen))
           FOR UPDATE SKIP LOCKED))
      RETURNING job_id, holds_key
    ), reached AS (
      SELECT p.lane_id, min(p.tenant COLLATE "C") AS tenant, count(*) = portion OR NOT bool_and(p.chosen) AS has_more,
             coalesce((array_agg(p.ready_at ORDER BY p.ready_at DESC, p.job_id DESC) FILTER (WHERE p.chosen))[1], p.at) AS at,
             coalesce((array_agg(p.job_id ORDER BY p.ready_at DESC, p.job_id DESC) FILTER (WHERE p.chosen))[1], p.id) AS id
        FROM placed p GROUP BY p.lane_id, p.at, p.id
    )
    SELECT (SELECT array_agg(g.job_id) FROM gone g) AS ids,
           (SELECT array_agg(g.job_id) FROM gone g WHERE g.holds_key) AS keyed,
           r.*
      INTO step
      FROM (SELECT array_agg(o.lane_id ORDER BY o.lane_id) FILTER (WHERE isfinite(o.at)) AS lanes,
                   array_agg(o.at ORDER BY o.lane_id) FILTER (WHERE isfinite(o.at)) AS ats,
                   array_agg(o.id ORDER BY o.lane_id) FILTER (WHERE isfinite(o.at)) AS bound_ids,
                   array_agg(o.lane_id ORDER BY o.lane_id) FILTER (WHERE o.has_more) AS more_lanes,
                   array_agg(o.at ORDER BY o.lane_id) FILTER (WHERE o.has_more) AS more_ats,
                   array_agg(o.id ORDER BY o.lane_id) FILTER (WHERE o.has_more) AS more_ids,
                   count(DISTINCT o.tenant COLLATE "C") FILTER (WHERE o.has_more) AS more_tenants
              FROM reached o) r;
    ids := ids || coalesce(step.ids, '{}');
    keyed := keyed || coalesce(step.keyed, '{}');
    missing := p_limit - cardinality(ids);
    lanes := lanes || step.lanes;
    ats := ats || step.ats;
    bound_ids := bound_ids || step.bound_ids;
    p_lanes := step.more_lanes;
    p_floors_at := step.more_ats;
    p_floors_id := step.more_ids;
    p_tenants := step.more_tenants;
  END LOOP;
END $$;
