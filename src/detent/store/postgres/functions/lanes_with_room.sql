-- The lanes in which somebody stands whom no limit keeps back, as it seems without locks.
--
-- Up to 200 of them, or p_limit where that is more: of so many, those whose heads come first, and of the lanes under one
-- limit no more than it has room for. Each gives at least one job, so that is enough.
CREATE OR REPLACE FUNCTION detent.lanes_with_room(
  p_queues text[], p_tasks text[], p_tenants text[], p_limit integer, p_after_tenant text, p_skip bigint[], t timestamptz
) RETURNS TABLE (lane_id integer, tenant text, priority smallint, task_key text, queue_key text, template text,
                 task_room integer, queue_room integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    WITH RECURSIVE standing AS (
      (SELECT r.lane_id FROM detent.ready r ORDER BY r.lane_id LIMIT 1)
      UNION ALL
      SELECT (SELECT r.lane_id FROM detent.ready r WHERE r.lane_id > s.lane_id ORDER BY r.lane_id LIMIT 1)
        FROM standing s WHERE s.lane_id IS NOT NULL
    ), lanes AS MATERIALIZED (
      SELECT l.id, l.tenant, l.priority, h.ready_at, h.job_id, q.limit_key AS queue_key, m.limit_key AS template,
             CASE WHEN l.limit_key = '' OR m.limit_key IS NULL THEN m.limit_key ELSE l.limit_key END AS task_key
        FROM standing s
        JOIN detent.lane l ON l.id = s.lane_id
        LEFT JOIN detent.limit_member m ON m.kind = 'task' AND m.name = l.task
        LEFT JOIN detent.limit_member q ON q.kind = 'queue' AND q.name = l.queue
       CROSS JOIN LATERAL (
         SELECT r.ready_at, r.job_id FROM detent.ready r
          WHERE r.lane_id = l.id AND (r.expires_at IS NULL OR r.expires_at > t)
            AND (p_skip IS NULL OR r.job_id <> ALL (p_skip))
          ORDER BY r.ready_at, r.job_id LIMIT 1) h
       WHERE l.task = ANY (p_tasks)
         AND (p_queues IS NULL OR l.queue = ANY (p_queues))
         AND (p_tenants IS NULL OR l.tenant = ANY (p_tenants))
         AND NOT EXISTS (SELECT 1 FROM detent.queue p WHERE p.name = l.queue AND p.paused_at IS NOT NULL)
    ), first_of_each AS (
      SELECT n.*, min(n.template) OVER (PARTITION BY n.task_key COLLATE "C") AS made_from,
             row_number() OVER (PARTITION BY n.task_key COLLATE "C" ORDER BY n.id) = 1 AS asks_for_task,
             row_number() OVER (PARTITION BY n.queue_key COLLATE "C" ORDER BY n.id) = 1 AS asks_for_queue
        FROM lanes n
    ), asked AS MATERIALIZED (
      -- Each limit is asked once, and nothing is joined: the planner cannot know how many keys there are.
      SELECT f.*, CASE WHEN f.asks_for_task AND f.task_key IS NOT NULL
                       THEN detent.limit_room(f.task_key, f.made_from, p_limit, t) END AS found_for_task,
                  CASE WHEN f.asks_for_queue AND f.queue_key IS NOT NULL
                       THEN detent.limit_room(f.queue_key, NULL, p_limit, t) END AS found_for_queue
        FROM first_of_each f
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
    SELECT c.id, c.tenant, c.priority, c.task_key, c.queue_key, c.made_from, c.task_room, c.queue_room
      FROM counted c
     WHERE c.lanes <= 200 OR ((c.task_key IS NULL OR c.nth_of_task <= c.task_room)
                              AND (c.queue_key IS NULL OR c.nth_of_queue <= c.queue_room))
     ORDER BY c.place LIMIT greatest(p_limit, 200);
END $$;
