-- Return the lane of these jobs; create it and its group if it is new. Lanes are never deleted.
CREATE OR REPLACE FUNCTION detent.lane_of(
  p_queue text, p_task text, p_tenant text, p_priority smallint, p_limit_key text, p_version integer DEFAULT 0
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  lane  bigint;
  range integer;
BEGIN
  LOOP
    SELECT l.id INTO lane FROM detent.lane l
     WHERE l.queue = p_queue AND l.task = p_task AND l.tenant = p_tenant AND l.priority = p_priority
       AND l.limit_key = coalesce(p_limit_key, '') AND l.version = p_version;
    IF FOUND THEN
      RETURN lane;
    END IF;
    SELECT g.id INTO range FROM detent.lane_group g
     WHERE g.queue = p_queue AND g.task = p_task AND g.version = p_version;
    IF FOUND THEN
      INSERT INTO detent.lane (id, queue, task, tenant, priority, limit_key, version)
        VALUES ((range::bigint << 32) + nextval('detent.lane_id_seq'), p_queue, p_task, p_tenant, p_priority,
                coalesce(p_limit_key, ''), p_version)
        ON CONFLICT DO NOTHING;
    ELSE
      INSERT INTO detent.lane_group (queue, task, version) VALUES (p_queue, p_task, p_version) ON CONFLICT DO NOTHING;
    END IF;
  END LOOP;
END $$;

-- Return the lane in which a job stands while it is pending. A workflow that has begun keeps its version.
CREATE OR REPLACE FUNCTION detent.lane_of_job(j detent.job) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
  RETURN detent.lane_of(j.queue, j.task, j.tenant, j.priority, j.limit_key,
                        coalesce((SELECT w.version FROM detent.workflow w WHERE w.job_id = j.id), 0));
END $$;

-- lanes_make: create lanes that do not exist yet.
-- takes:   parallel arrays of queue, task, tenant, priority, limit key (empty: none)
-- gives:   nothing
-- locks:   the lanes it creates, until the transaction ends: so it runs in a transaction of its own, before a caller's
--          transaction needs a new lane. Otherwise all others that need the lane would wait for the caller.
-- refuses: nothing
-- differs: SQLite has one writer, which creates lanes when it needs them
CREATE OR REPLACE FUNCTION detent.lanes_make_v1(
  p_queues text[], p_tasks text[], p_tenants text[], p_priorities smallint[], p_limit_keys text[]
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
  SELECT detent.lane_of(k.queue, k.task, k.tenant, k.priority, k.limit_key)
    FROM unnest(p_queues, p_tasks, p_tenants, p_priorities, p_limit_keys) AS k (queue, task, tenant, priority, limit_key)
   ORDER BY k.queue, k.task, k.tenant, k.priority, k.limit_key;
$$;

-- Step along the lanes of these groups that have ready jobs: up to p_most, in the order of their numbers, starting after p_after
-- (null: at the first) and wrapping around.
--
-- Gives the lanes in that order, and whether these are all. Each step is one look-up in an index, for any number of lanes
-- without ready jobs in between. Groups and bounds are sorted. Rows of a lane up to its bound are not read.
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
  -- A range starts after (lo, at, id) and ends with the lane hi.
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
  -- The group in which the steps start comes last again, with the lanes up to there.
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
  -- A look-up reads at least one page, so each step reads a hundred rows: these may be many short lanes.
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

-- Lanes that have ready jobs and room under every limit, read without locks. n is the position of a lane among those given.
--
-- If these are all lanes that have ready jobs (p_all): up to 200 of them, or p_limit if that is more. Of more lanes, those whose first jobs
-- are the oldest, and of the lanes under one limit no more than it has room for. Otherwise the first p_limit, in the order given.
-- Each has at least one job, so that is enough.
CREATE OR REPLACE FUNCTION detent.lanes_with_room(
  p_lanes bigint[], p_all boolean, p_limit integer, p_after_tenant text, p_skip bigint[], t timestamptz
) RETURNS TABLE (n integer, lane_id bigint, tenant text, priority smallint, task_key text, queue_key text, template text,
                 task_room integer, queue_room integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    WITH lanes AS MATERIALIZED (
      SELECT s.n::integer AS n, l.id, l.tenant, l.priority, h.ready_at, h.job_id, q.limit_key AS queue_key, m.limit_key AS template,
             CASE WHEN l.limit_key = '' OR m.limit_key IS NULL THEN m.limit_key ELSE l.limit_key END AS task_key
        FROM unnest(p_lanes) WITH ORDINALITY AS s (lane_id, n)
       CROSS JOIN LATERAL (SELECT n.* FROM detent.lane n WHERE n.id = s.lane_id OFFSET 0) l
        LEFT JOIN detent.limit_member m ON m.kind = 'task' AND m.name = l.task
        LEFT JOIN detent.limit_member q ON q.kind = 'queue' AND q.name = l.queue
       CROSS JOIN LATERAL (
         SELECT r.ready_at, r.job_id FROM detent.ready r
          WHERE r.lane_id = l.id AND (r.expires_at IS NULL OR r.expires_at > t)
            AND (p_skip IS NULL OR r.job_id <> ALL (p_skip))
          ORDER BY r.ready_at, r.job_id LIMIT 1) h
    ), first_of_each AS (
      SELECT n.*, min(n.template) OVER (PARTITION BY n.task_key COLLATE "C") AS made_from,
             row_number() OVER (PARTITION BY n.task_key COLLATE "C" ORDER BY n.id) = 1 AS asks_for_task,
             row_number() OVER (PARTITION BY n.queue_key COLLATE "C" ORDER BY n.id) = 1 AS asks_for_queue
        FROM lanes n
    ), asked AS MATERIALIZED (
      -- Each limit is read once, without a join: the planner cannot know how many keys there are.
      SELECT f.*, a.room AS found_for_task, b.room AS found_for_queue
        FROM first_of_each f
        LEFT JOIN LATERAL (SELECT x.room FROM detent.room_under(f.task_key, f.made_from, p_limit, t) AS x (room)
                            WHERE f.asks_for_task AND f.task_key IS NOT NULL OFFSET 0) a ON true
        LEFT JOIN LATERAL (SELECT x.room FROM detent.room_under(f.queue_key, NULL, p_limit, t) AS x (room)
                            WHERE f.asks_for_queue AND f.queue_key IS NOT NULL OFFSET 0) b ON true
    ), roomy AS (
      SELECT a.*, coalesce(max(a.found_for_task) OVER (PARTITION BY a.task_key COLLATE "C"), p_limit) AS task_room,
             coalesce(max(a.found_for_queue) OVER (PARTITION BY a.queue_key COLLATE "C"), p_limit) AS queue_room
        FROM asked a
    ), entered AS (
      SELECT r.*, row_number() OVER (PARTITION BY r.tenant COLLATE "C" ORDER BY r.priority DESC, r.ready_at, r.job_id) AS turn
        FROM roomy r WHERE r.task_room > 0 AND r.queue_room > 0
    ), placed AS (
      SELECT e.*, row_number() OVER (
               ORDER BY e.turn, coalesce(e.tenant COLLATE "C" <= p_after_tenant, false), e.tenant COLLATE "C") AS place
        FROM entered e
    ), counted AS (
      SELECT p.*, count(*) OVER () AS lanes,
             row_number() OVER (PARTITION BY p.task_key COLLATE "C" ORDER BY p.place) AS nth_of_task,
             row_number() OVER (PARTITION BY p.queue_key COLLATE "C" ORDER BY p.place) AS nth_of_queue
        FROM placed p
    )
    SELECT c.n, c.id, c.tenant, c.priority, c.task_key, c.queue_key, c.made_from, c.task_room, c.queue_room
      FROM counted c
     WHERE c.lanes <= 200 OR ((c.task_key IS NULL OR c.nth_of_task <= c.task_room)
                              AND (c.queue_key IS NULL OR c.nth_of_queue <= c.queue_room))
     ORDER BY CASE WHEN p_all THEN c.place ELSE c.n END LIMIT CASE WHEN p_all THEN greatest(p_limit, 200) ELSE p_limit END;
END $$;
