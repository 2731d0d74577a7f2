-- Step along the lanes of these groups that have ready jobs: up to p_most, in the order of their numbers, beginning after p_after
-- (null: at the first) and going round.
--
-- Gives the lanes in that order, and whether these are all there are. Each step is one look into an index, whatever number of lanes
-- without ready jobs lies between. Groups and bounds are sorted. Rows of a lane up to its bound are not looked at.
CREATE OR REPLACE FUNCTION detent.lanes_ready(
  p_groups integer[], p_after bigint, p_most integer, p_bound_lanes bigint[], p_bound_ats timestamptz[], p_bound_ids bigint[],
  OUT lanes bigint[], OUT all_of_them boolean
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  many  integer := cardinality(p_groups);
  first integer := 0;
  lo    bigint;
  hi    bigint;
  -- A range lies behind (lo, at, id) and ends with the lane hi.
  los   bigint[] := '{}';
  ats   timestamptz[] := '{}';
  ids   bigint[] := '{}';
  his   bigint[] := '{}';
BEGIN
  lanes := '{}';
  all_of_them := true;
  IF many = 0 THEN
    RETURN;
  END IF;
  p_after := coalesce(p_after, 0);
  WHILE first < many AND (p_groups[first + 1]::bigint + 1) << 32 <= p_after + 1 LOOP
    first := first + 1;
  END LOOP;
  -- The group in which the steps begin comes last once more, with the lanes up to there.
  FOR n IN 0 .. many LOOP
    lo := p_groups[(first + n) % many + 1]::bigint << 32;
    hi := lo + 4294967295;
    EXIT WHEN n = many AND NOT p_after BETWEEN lo + 1 AND hi;
    IF n = 0 AND first < many THEN
      lo := greatest(lo, p_after);
    ELSIF n = many THEN
      hi := p_after;
    END IF;
    FOR b IN 1 .. coalesce(cardinality(p_bound_lanes), 0) LOOP
      IF p_bound_lanes[b] > lo AND p_bound_lanes[b] <= hi THEN
        los := los || lo || p_bound_lanes[b];
        ats := ats || 'infinity'::timestamptz || p_bound_ats[b];
        ids := ids || 9223372036854775807 || p_bound_ids[b];
        his := his || (p_bound_lanes[b] - 1) || p_bound_lanes[b];
        lo := p_bound_lanes[b];
      END IF;
    END LOOP;
    los := los || lo;
    ats := ats || 'infinity'::timestamptz;
    ids := ids || 9223372036854775807;
    his := his || hi;
  END LOOP;
  -- A look into an index reads a page at least, so each step takes a hundred rows: of short lanes it meets many.
  SELECT coalesce(array_agg(u.lane_id ORDER BY s.nth, u.lane_id), '{}') INTO lanes
    FROM (
      WITH RECURSIVE step (nth, n, reached, lanes, total) AS (
        SELECT 0, 0, NULL::bigint, '{}'::bigint[], 0
        UNION ALL
        SELECT s.nth + 1, x.n, CASE WHEN z.rows = 100 THEN z.lanes[cardinality(z.lanes)] END, z.lanes,
               s.total + coalesce(cardinality(z.lanes), 0)
          FROM step s
         CROSS JOIN LATERAL (
           SELECT s.n + 1 AS n, los[s.n + 1] AS lo, ats[s.n + 1] AS at, ids[s.n + 1] AS id WHERE s.reached IS NULL
           UNION ALL
           SELECT s.n, s.reached, 'infinity'::timestamptz, 9223372036854775807 WHERE s.reached IS NOT NULL) x
         CROSS JOIN LATERAL (
           SELECT array_agg(DISTINCT y.lane_id) AS lanes, count(*) AS rows
             FROM (SELECT q.lane_id FROM detent.ready q
                    WHERE (q.lane_id, q.ready_at, q.job_id) > (x.lo, x.at, x.id) AND q.lane_id <= his[x.n]
                    ORDER BY q.lane_id, q.ready_at, q.job_id LIMIT 100) y) z
         WHERE x.n <= cardinality(los) AND s.total <= p_most
      )
      SELECT t.nth, t.lanes FROM step t) s
   CROSS JOIN LATERAL unnest(s.lanes) AS u (lane_id);
  all_of_them := cardinality(lanes) <= p_most;
  lanes := lanes[1 : p_most];
END $$;
