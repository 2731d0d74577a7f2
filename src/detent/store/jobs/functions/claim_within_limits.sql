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
  task_ns integer[];
  queue_ns integer[];
  used    text[];
  held    text[];
  taken   record;
  places   bigint[];
  whole   boolean;
  portion integer;
BEGIN
  ids := '{}';
  keyed := '{}';
  shared := ARRAY(
    SELECT l.key FROM detent.rate_limit l WHERE l.key IN (
      SELECT m.limit_key FROM detent.limit_member m
       WHERE (m.kind = 'task' AND m.name = ANY (p_tasks))
          OR (m.kind = 'queue' AND (p_queues IS NULL OR m.name = ANY (p_queues))))
     ORDER BY l.key FOR UPDATE);
  PERFORM detent.limit_sweep(u.key, t) FROM unnest(shared) AS u (key);
  t := detent.clock();
  after_lane := p_after_lane;
  -- Lanes that have no room are passed over, some hundreds of them. The next claim goes on from there.
  FOR round IN 1 .. 5 LOOP
    IF p_tenants IS NULL THEN
      SELECT r.lanes, r.all_of_them INTO places, whole
        FROM detent.lanes_ready(p_groups, after_lane, greatest(p_limit, 200), NULL, NULL, NULL) r;
    ELSE
      places := ARRAY(SELECT l.id FROM detent.lane l WHERE l.tenant = ANY (p_tenants) AND (l.id >> 32)::integer = ANY (p_groups));
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
  SELECT array_agg(u.key ORDER BY u.key), array_agg(u.room ORDER BY u.key) INTO keys, rooms
    FROM (SELECT w.key, min(w.room) AS room FROM unnest(lanes.task_keys || lanes.queue_keys, lanes.task_rooms || lanes.queue_rooms)
            AS w (key, room) WHERE w.key IS NOT NULL GROUP BY w.key) u;
  task_ns := ARRAY(SELECT coalesce(array_position(keys, u.key), 0) FROM unnest(lanes.task_keys) WITH ORDINALITY AS u (key, n) ORDER BY u.n);
  queue_ns := ARRAY(SELECT coalesce(array_position(keys, u.key), 0) FROM unnest(lanes.queue_keys) WITH ORDINALITY AS u (key, n) ORDER BY u.n);
  taken := detent.claim_choose(
    lanes.ids, lanes.tenants, lanes.priorities, task_ns, queue_ns, keys, rooms, p_limit, p_after_tenant, portion, p_skip, t);
  used := ARRAY(SELECT DISTINCT keys[u.n] FROM unnest(taken.task_ns) AS u (n) WHERE u.n > 0 AND keys[u.n] <> ALL (shared));
  IF cardinality(used) > 0 THEN
    PERFORM detent.limit_make(u.key, u.template, t)
       FROM (SELECT DISTINCT ON (w.key) w.key, w.template FROM unnest(lanes.task_keys, lanes.templates) AS w (key, template)
              WHERE w.key = ANY (used) ORDER BY w.key, w.template) u;
    held := ARRAY(SELECT l.key FROM detent.rate_limit l WHERE l.key = ANY (used) ORDER BY l.key FOR UPDATE);
    t := detent.clock();
    -- A key that is not held, or that went meanwhile, waits for the next claim.
    rooms := ARRAY(
      SELECT CASE WHEN u.key = ANY (held) THEN detent.limit_room(u.key, NULL, p_limit, t) WHEN u.key = ANY (shared) THEN u.room ELSE 0 END
        FROM unnest(keys, rooms) WITH ORDINALITY AS u (key, room, n) ORDER BY u.n);
    taken := detent.claim_choose(
      lanes.ids, lanes.tenants, lanes.priorities, task_ns, queue_ns, keys, rooms, p_limit, p_after_tenant, portion, p_skip, t);
  END IF;
  WITH gone AS (
    DELETE FROM detent.ready WHERE ctid = ANY (ARRAY(
      SELECT r.ctid FROM detent.ready r WHERE r.ctid = ANY (taken.places) AND r.job_id = ANY (taken.jobs) FOR UPDATE SKIP LOCKED))
    RETURNING job_id, holds_key
  )
  SELECT coalesce(array_agg(g.job_id), '{}'), coalesce(array_agg(g.job_id) FILTER (WHERE g.holds_key), '{}')
    INTO ids, keyed FROM gone g;
  PERFORM detent.limit_spend(keys[u.n], array_agg(u.job_id), array_agg(u.cost), t)
     FROM (SELECT w.n, w.job_id, max(w.cost) AS cost
             FROM (SELECT x.n, x.job_id, x.cost FROM unnest(taken.task_ns, taken.jobs, taken.costs) AS x (n, job_id, cost)
                   UNION ALL SELECT x.n, x.job_id, 1 FROM unnest(taken.queue_ns, taken.jobs) AS x (n, job_id)) w
            GROUP BY w.n, w.job_id) u
    WHERE u.n > 0 AND u.job_id = ANY (ids)
    GROUP BY u.n;
END $$;
