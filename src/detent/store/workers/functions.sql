-- worker_seen: record that a worker is alive.
-- takes:   its id and name, host and process, its queues and tasks (JSON arrays), its slots, running jobs, whether it stops,
--          the versions of workflows that it can continue (JSON object by task)
-- gives:   who asked it to drain, and why; null if no one did
-- locks:   once a second the row of the watch; its own row; rows of workers that are long gone, unless others have locked them
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.worker_seen_v2(
  p_id bigint, p_name text, p_host text, p_pid integer, p_queues text, p_tasks text, p_slots integer, p_running integer,
  p_stopping boolean, p_versions text DEFAULT '{}'
) RETURNS TABLE (drain_requested_by text, drain_reason text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  UPDATE detent.watch w
     SET gap_from = CASE WHEN w.watched_at < t - interval '5 seconds' THEN w.watched_at ELSE w.gap_from END,
         gap_to = CASE WHEN w.watched_at < t - interval '5 seconds' THEN t ELSE w.gap_to END, watched_at = t
   WHERE (w.watched_at BETWEEN t - interval '1 second' AND t) IS NOT TRUE;
  UPDATE detent.worker AS w
     SET name = p_name, host = p_host, pid = p_pid, queues = p_queues, tasks = p_tasks, slots = p_slots,
         running = p_running, stopping = p_stopping, versions = p_versions, seen_at = greatest(w.seen_at, t)
   WHERE w.id = p_id
  RETURNING w.drain_requested_by, w.drain_reason INTO drain_requested_by, drain_reason;
  IF NOT FOUND THEN
    INSERT INTO detent.worker (id, name, host, pid, queues, tasks, slots, running, stopping, versions, started_at, seen_at)
      VALUES (p_id, p_name, p_host, p_pid, p_queues, p_tasks, p_slots, p_running, p_stopping, p_versions, t, t)
      ON CONFLICT (id) DO NOTHING;
    DELETE FROM detent.worker WHERE id = ANY (ARRAY(
      SELECT w.id FROM detent.worker w WHERE w.seen_at < t - interval '1 day' FOR UPDATE SKIP LOCKED));
  END IF;
  RETURN NEXT;
END $$;

-- worker_gone: remove a worker that has ended.
-- takes:   its id
-- gives:   nothing
-- locks:   its row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.worker_gone_v1(p_id bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  DELETE FROM detent.worker w WHERE w.id = p_id;
END $$;

-- worker_list: the workers that are alive.
-- takes:   within how many seconds they were seen, after which id, how many
-- gives:   workers by id
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.worker_list_v1(p_within double precision, p_after_id bigint, p_limit integer)
RETURNS SETOF detent.worker
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT w.* FROM detent.worker w
     WHERE w.id > p_after_id AND w.seen_at >= detent.clock() - make_interval(secs => p_within)
     ORDER BY w.id LIMIT p_limit;
END $$;

-- worker_get: a worker.
-- takes:   its id
-- gives:   its row
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.worker_get_v1(p_id bigint) RETURNS SETOF detent.worker
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT w.* FROM detent.worker w WHERE w.id = p_id;
END $$;

-- worker_drain: ask a worker to stop claiming, finish its jobs and end.
-- takes:   its id, who, why
-- gives:   its row; none if there is no such worker
-- locks:   its row
-- refuses: nothing; a no-op for a worker that was asked before
CREATE OR REPLACE FUNCTION detent.worker_drain_v1(p_id bigint, p_actor text, p_reason text) RETURNS SETOF detent.worker
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  UPDATE detent.worker w SET drain_requested_at = t, drain_requested_by = p_actor, drain_reason = p_reason
   WHERE w.id = p_id AND w.drain_requested_at IS NULL;
  IF FOUND THEN
    INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
      VALUES ('worker', p_id::text, 'open', 'draining', 'drain', p_actor, p_reason, t);
  END IF;
  RETURN QUERY SELECT w.* FROM detent.worker w WHERE w.id = p_id;
END $$;

-- service_take: take or keep a service that one worker at a time runs.
-- takes:   the service, who, for how many seconds
-- gives:   the term; null if another worker has it
-- locks:   the service's row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.service_take_v1(p_name text, p_holder bigint, p_seconds double precision)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  t       timestamptz := detent.clock();
  my_term bigint;
BEGIN
  INSERT INTO detent.service AS s (name, holder, term, expires_at)
    VALUES (p_name, p_holder, 1, t + make_interval(secs => p_seconds))
    ON CONFLICT (name) DO UPDATE
      SET holder = p_holder, expires_at = excluded.expires_at,
          term = s.term + (s.holder <> p_holder OR s.expires_at <= t)::integer
      -- No service is taken for that long: a term that ends later is damage, and must not block the service.
      WHERE s.holder = p_holder OR s.expires_at <= t OR s.expires_at > t + make_interval(secs => greatest(p_seconds, 3600))
    RETURNING s.term INTO my_term;
  RETURN my_term;
END $$;

-- service_drop: give up a service at once.
-- takes:   the service, who
-- gives:   nothing
-- locks:   the service's row
-- refuses: nothing; a no-op for a worker that does not have it
CREATE OR REPLACE FUNCTION detent.service_drop_v1(p_name text, p_holder bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  UPDATE detent.service s SET expires_at = t WHERE s.name = p_name AND s.holder = p_holder AND s.expires_at > t;
END $$;

-- agenda: what there is to do besides jobs, and when.
-- takes:   nothing
-- gives:   the time, and the earliest time of each kind; null if there is none
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.agenda_v3() RETURNS TABLE (
  now timestamptz, promote_at timestamptz, expire_at timestamptz, reap_at timestamptz, lease_checksum bigint,
  schedule_at timestamptz, reconcile_at timestamptz, operations boolean, recovery boolean, failure_reports boolean,
  firing boolean, notices boolean, wake_requests boolean, tree_cancels boolean, schema_demanded integer
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET lock_timeout = '2s' AS $$
BEGIN
  RETURN QUERY SELECT
    detent.clock(),
    detent.calendar_time((SELECT min(w.due_at) FROM detent.waiting w WHERE w.limit_key IS NULL)),
    detent.calendar_time(
      least((SELECT min(r.expires_at) FROM detent.ready r WHERE r.expires_at IS NOT NULL),
            (SELECT min(w.expires_at) FROM detent.waiting w WHERE w.expires_at IS NOT NULL))),
    detent.calendar_time(held.first_at),
    held.lease_checksum,
    detent.calendar_time((SELECT min(s.next_at) FROM detent.schedule s WHERE s.paused_at IS NULL)),
    detent.calendar_time((SELECT min(b.reconcile_at) FROM detent.batch_run b WHERE b.reconcile_at IS NOT NULL)),
    EXISTS (SELECT 1 FROM detent.operation o WHERE o.state = 'running'),
    EXISTS (SELECT 1 FROM detent.recovery r),
    EXISTS (SELECT 1 FROM detent.failure_report u),
    EXISTS (SELECT 1 FROM detent.alert a WHERE a.state = 'firing'),
    EXISTS (SELECT 1 FROM detent.alert_notice n WHERE NOT n.spread)
      OR EXISTS (SELECT 1 FROM detent.alert_delivery d WHERE d.state = 'pending'),
    EXISTS (SELECT 1 FROM detent.wake_request),
    EXISTS (SELECT 1 FROM detent.tree_cancel),
    (SELECT max(m.oldest_code) FROM detent.migration m)
  FROM (SELECT min(x.expires_at) AS first_at, sum(extract(epoch FROM detent.calendar_time(x.expires_at)) * 1000000)::bigint AS lease_checksum
          FROM (SELECT l.expires_at FROM detent.lease l ORDER BY l.expires_at LIMIT 100) x) held;
END $$;
