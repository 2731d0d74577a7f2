-- Take ready rows if some of the lanes are under limits: no more than each limit has room for. Rows without room are passed
-- over and stay.
--
-- The limits of tasks and queues are locked first. Limits of keys, of which there may be very many, are read first. Only those
-- that would be used are created if they are missing, locked, and read again. All stay locked until the claim commits; other
-- claims under the same limit wait.
CREATE OR REPLACE FUNCTION detent.claim_within_limits(
  p_groups integer[], p_queues text[], p_tasks text[], p_tenants text[], p_limit integer, p_after_tenant text,
  p_skip bigint[], p_after_lane bigint, OUT ids bigint[], OUT keyed bigint[], OUT after_lane bigint
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  t       timestamptz := detent.clock();
  shared  text[];
  lanes   record;
  keys    text[];
  rooms   integer[];
  fresh   integer[];
  templates text[];
  task_ns integer[];
  queue_ns integer[];
  is_used boolean[];
  used    text[];
  held    text[];
  taken   record;
  places   bigint[];
  whole   boolean;
  portion integer;
  n       integer;
BEGIN
  ids := '{}';
  keyed := '{}';
  shared := ARRAY(
    SELECT l.key FROM detent.rate_limit l WHERE l.key IN (
      SELECT m.limit_key FROM detent.limit_member m
       WHERE (m.kind = 'task' AND m.name = ANY (p_tasks))
          OR (m.kind = 'queue' AND (p_queues IS NULL OR m.name = ANY (p_queues))))
     ORDER BY l.key FOR UPDATE);
  PERFORM detent.limits_sweep(shared, t);
  t := detent.clock();
  after_lane := p_after_lane;
  -- Lanes that have no room are passed over, some hundreds of them. The next claim goes on from there.
  FOR round IN 1 .. 5 LOOP
    IF p_tenants IS NULL THEN
      SELECT r.lanes, r.all_of_them INTO places, whole
        FROM detent.lanes_ready(p_groups, after_lane, greatest(p_limit, 200), NULL, NULL, NULL) r;
    ELSE
      places := ARRAY(SELECT l.id FROM detent.lane l WHERE l.tenant COLLATE "C" = ANY (p_tenants) AND (l.id >> 32)::integer = ANY (p_groups));
      whole := true;
    END IF;
    SELECT array_agg(l.lane_id) AS ids, array_agg(l.tenant) AS tenants, array_agg(l.priority) AS priorities,
           array_agg(l.task_key) AS task_keys, array_agg(l.queue_key) AS queue_keys, array_agg(l.template) AS templates,
           array_agg(l.task_room) AS task_rooms, array_agg(l.queue_room) AS queue_rooms, max(l.n) AS last
      INTO lanes
      FROM detent.lanes_with_room(places, whole, p_limit, p_after_tenant, p_skip, t) l;
    after_lane := CASE WHEN NOT whole THEN places[CASE WHEN cardinality(lanes.ids) = p_limit THEN lanes.last ELSE cardinality(places) END] END;
    EXIT WHEN whole OR lanes.ids IS NOT NULL;
  END LOOP;
  IF lanes.ids IS NULL THEN
    RETURN;
  END IF;
  portion := CASE WHEN cardinality(lanes.ids) <= 100 THEN p_limit ELSE ceil(p_limit::numeric / cardinality(lanes.ids)) END;
  -- Each limit gets a number, in the order of the keys: there may be as many as jobs, and nothing below looks for one in a list.
  SELECT array_agg(u.key ORDER BY u.key COLLATE "C"), array_agg(u.room ORDER BY u.key COLLATE "C"),
         array_agg(u.template ORDER BY u.key COLLATE "C")
    INTO keys, rooms, templates
    FROM (SELECT min(w.key COLLATE "C") AS key, min(w.room) AS room, min(w.template COLLATE "C") AS template
            FROM unnest(lanes.task_keys || lanes.queue_keys, lanes.task_rooms || lanes.queue_rooms, lanes.templates)
              AS w (key, room, template)
           WHERE w.key IS NOT NULL GROUP BY w.key COLLATE "C") u;
  SELECT array_agg(z.n ORDER BY z.ord) FILTER (WHERE NOT z.of_queue), array_agg(z.n ORDER BY z.ord) FILTER (WHERE z.of_queue)
    INTO task_ns, queue_ns
    FROM (SELECT w.ord, w.of_queue,
                 CASE WHEN w.key IS NULL THEN 0 ELSE dense_rank() OVER (ORDER BY w.key COLLATE "C") END::integer AS n
            FROM (SELECT u.ord, false AS of_queue, u.key FROM unnest(lanes.task_keys) WITH ORDINALITY AS u (key, ord)
                  UNION ALL
                  SELECT u.ord, true, u.key FROM unnest(lanes.queue_keys) WITH ORDINALITY AS u (key, ord)) w) z;
  taken := detent.claim_choose(
    lanes.ids, lanes.tenants, lanes.priorities, task_ns, queue_ns, keys, rooms, p_limit, p_after_tenant, portion, p_skip, t);
  is_used := array_fill(false, ARRAY[coalesce(cardinality(keys), 0)]);
  FOREACH n IN ARRAY taken.task_ns LOOP
    IF n > 0 THEN
      is_used[n] := true;
    END IF;
  END LOOP;
  used := ARRAY(SELECT u.key FROM unnest(keys, is_used) AS u (key, is_used) WHERE u.is_used AND u.key <> ALL (shared));
  IF cardinality(used) > 0 THEN
    PERFORM detent.limits_make(
      keys, ARRAY(SELECT CASE WHEN u.is_used THEN u.template END FROM unnest(templates, is_used) WITH ORDINALITY AS u (template, is_used, n)
                   ORDER BY u.n), t);
    held := ARRAY(SELECT l.key FROM detent.rate_limit l WHERE l.key = ANY (used) ORDER BY l.key FOR UPDATE);
    t := detent.clock();
    IF cardinality(held) < cardinality(used) THEN
      is_used := ARRAY(SELECT u.is_used AND u.key = ANY (held) FROM unnest(keys, is_used) WITH ORDINALITY AS u (key, is_used, n) ORDER BY u.n);
    END IF;
    -- A key that is not held, or that went meanwhile, waits for the next claim.
    fresh := ARRAY(
      SELECT CASE WHEN u.key = ANY (shared) THEN u.room ELSE coalesce(r.room, 0) END
        FROM unnest(keys, rooms, is_used) WITH ORDINALITY AS u (key, room, is_used, n)
        LEFT JOIN LATERAL (SELECT x.room FROM detent.room_under(u.key, NULL, p_limit, t) AS x (room)
                            WHERE u.is_used AND u.key <> ALL (shared) OFFSET 0) r ON true
       ORDER BY u.n);
    -- What was chosen stays, if what it was chosen by still holds.
    IF EXISTS (SELECT 1 FROM unnest(rooms, fresh, is_used) AS u (room, fresh, is_used) WHERE u.is_used AND u.fresh < u.room)
       OR cardinality(held) < cardinality(used) OR EXISTS (SELECT 1 FROM unnest(taken.costs) AS u (cost) WHERE u.cost > 1) THEN
      taken := detent.claim_choose(
        lanes.ids, lanes.tenants, lanes.priorities, task_ns, queue_ns, keys, fresh, p_limit, p_after_tenant, portion, p_skip, t);
    END IF;
    rooms := fresh;
  END IF;
  FOR round IN 1 .. 2 LOOP
    WITH gone AS (
      DELETE FROM detent.ready WHERE ctid = ANY (ARRAY(
        SELECT r.ctid FROM detent.ready r WHERE r.ctid = ANY (taken.places) AND r.job_id = ANY (taken.jobs) FOR UPDATE SKIP LOCKED))
      RETURNING job_id, holds_key
    )
    SELECT coalesce(array_agg(g.job_id), '{}'), coalesce(array_agg(g.job_id) FILTER (WHERE g.holds_key), '{}')
      INTO ids, keyed FROM gone g;
    EXIT WHEN cardinality(ids) > 0 OR cardinality(taken.jobs) = 0 OR round = 2;
    -- Another claim took all of them while this one waited for the limits.
    taken := detent.claim_choose(
      lanes.ids, lanes.tenants, lanes.priorities, task_ns, queue_ns, keys, rooms, p_limit, p_after_tenant, portion, p_skip, t);
  END LOOP;
  IF cardinality(ids) > 0 THEN
    PERFORM detent.limits_sweep(used, t);
    PERFORM detent.limits_spend(array_agg(keys[w.n]), array_agg(w.job_id), array_agg(w.cost), t)
       FROM (SELECT v.n, v.job_id, max(v.cost) AS cost
               FROM (SELECT x.n, x.job_id, x.cost FROM unnest(taken.task_ns, taken.jobs, taken.costs) AS x (n, job_id, cost)
                     UNION ALL SELECT x.n, x.job_id, 1 FROM unnest(taken.queue_ns, taken.jobs) AS x (n, job_id)) v
              WHERE v.n > 0 AND (cardinality(ids) = cardinality(taken.jobs) OR v.job_id = ANY (ids))
              GROUP BY v.n, v.job_id) w;
  END IF;
END $$;
