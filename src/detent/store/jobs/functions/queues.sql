-- queue_pause: no claim enters this queue until it is resumed.
-- takes:   the queue, who, why
-- gives:   whether that changed anything
-- locks:   the queue's row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.queue_pause_v1(p_queue text, p_actor text, p_reason text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  INSERT INTO detent.queue AS q (name, paused_at, paused_by, reason) VALUES (p_queue, t, p_actor, p_reason)
    ON CONFLICT (name) DO UPDATE SET paused_at = t, paused_by = p_actor, reason = p_reason WHERE q.paused_at IS NULL;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    VALUES ('queue', p_queue, 'open', 'paused', 'pause', p_actor, p_reason, t);
  RETURN true;
END $$;

-- queue_resume: claims enter this queue again.
-- takes:   the queue, who, why
-- gives:   whether that changed anything
-- locks:   the queue's row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.queue_resume_v1(p_queue text, p_actor text, p_reason text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  UPDATE detent.queue q SET paused_at = NULL, paused_by = NULL, reason = NULL
   WHERE q.name = p_queue AND q.paused_at IS NOT NULL;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    VALUES ('queue', p_queue, 'paused', 'open', 'resume', p_actor, p_reason, t);
  PERFORM detent.wake_waiters(false);
  RETURN true;
END $$;

-- queue_list: every queue that was ever paused, by name.
-- takes:   nothing
-- gives:   one row per queue
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.queue_list_v1() RETURNS SETOF detent.queue
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
  SELECT q.* FROM detent.queue q ORDER BY q.name COLLATE "C";
$$;

-- queue_depths: jobs by queue and state.
-- takes:   nothing
-- gives:   a row by queue and state
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.queue_depths_v1() RETURNS TABLE (queue text, state text, jobs bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT c.queue, c.state, sum(c.jobs)::bigint FROM detent.queue_counts c
     GROUP BY c.queue, c.state ORDER BY c.queue COLLATE "C", c.state COLLATE "C";
END $$;

-- ready_oldest: the ready job that has been due longest, for each queue and task.
-- takes:   nothing
-- gives:   a row for each queue and task that has a ready job, from 10,000 lanes at most; paused queues too
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.ready_oldest_v1()
RETURNS TABLE (queue text, task text, job_id bigint, ready_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    WITH RECURSIVE standing (lane_id, ready_at, job_id) AS (
      (SELECT r.lane_id, r.ready_at, r.job_id FROM detent.ready r ORDER BY r.lane_id, r.ready_at, r.job_id LIMIT 1)
      UNION ALL
      SELECT n.lane_id, n.ready_at, n.job_id
        FROM standing s CROSS JOIN LATERAL (
          SELECT r.lane_id, r.ready_at, r.job_id FROM detent.ready r
           WHERE r.lane_id > s.lane_id ORDER BY r.lane_id, r.ready_at, r.job_id LIMIT 1) n
    )
    SELECT DISTINCT ON (l.queue COLLATE "C", l.task COLLATE "C") l.queue, l.task, s.job_id, s.ready_at
      FROM (SELECT * FROM standing LIMIT 10000) s JOIN detent.lane l ON l.id = s.lane_id
     ORDER BY l.queue COLLATE "C", l.task COLLATE "C", s.ready_at, s.job_id;
END $$;
