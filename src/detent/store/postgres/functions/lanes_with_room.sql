-- Those of these lanes that have ready jobs and room under every limit, read without locks. n is the place of a lane among those given.
--
-- If these are all lanes that have ready jobs (p_all): up to 200 of them, or p_limit if that is more. Of more lanes those whose heads
-- come first, and of the lanes under one limit no more than it has room for. Otherwise the first p_limit, in the order given.
-- Each gives at least one job, so that is enough.
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
        JOIN detent.lane l ON l.id = s.lane_id
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
    SELECT c.n, c.id, c.tenant, c.priority, c.task_key, c.queue_key, c.made_from, c.task_room, c.queue_room
      FROM counted c
     WHERE c.lanes <= 200 OR ((c.task_key IS NULL OR c.nth_of_task <= c.task_room)
                              AND (c.queue_key IS NULL OR c.nth_of_queue <= c.queue_room))
     ORDER BY CASE WHEN p_all THEN c.place ELSE c.n END LIMIT CASE WHEN p_all THEN greatest(p_limit, 200) ELSE p_limit END;
END $$;
