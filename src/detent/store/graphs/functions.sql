-- graph_start: make a graph of jobs that were enqueued in this transaction.
-- takes:   the job of the graph, its name; the nodes: names, jobs, how many others each waits for; and which job follows which
--          others, and how (success, end)
-- gives:   nothing
-- locks:   new rows only
-- refuses: jobs that are not pending children of the graph (DT041): a mistake of the caller
-- differs: on SQLite the rows are inserted by the verb itself
CREATE OR REPLACE FUNCTION detent.graph_start_v1(
  p_graph_id bigint, p_name text, p_names text[], p_job_ids bigint[], p_blocked integer[],
  p_jobs bigint[], p_after_ids bigint[], p_kinds text[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off AS $$
BEGIN
  IF cardinality(p_job_ids) <> (SELECT count(*) FROM detent.job j WHERE j.id = ANY (p_job_ids) AND j.parent_id = p_graph_id
                                   AND j.state = 'pending' AND j.attempt = 0)
     OR NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = p_graph_id AND j.task = 'detent.graph' AND j.state = 'pending') THEN
    RAISE EXCEPTION 'DT041 graph %: its nodes are not new jobs of it', p_graph_id USING ERRCODE = 'DT041';
  END IF;
  INSERT INTO detent.graph (job_id, name, total) VALUES (p_graph_id, p_name, cardinality(p_job_ids));
  INSERT INTO detent.graph_node (graph_id, name, job_id, blocked)
    SELECT p_graph_id, u.name, u.job_id, u.blocked FROM unnest(p_names, p_job_ids, p_blocked) AS u (name, job_id, blocked);
  INSERT INTO detent.job_after (job_id, after_id, kind)
    SELECT u.job_id, u.after_id, u.kind FROM unnest(p_jobs, p_after_ids, p_kinds) AS u (job_id, after_id, kind);
END $$;

-- graph_get: graphs by the ids of their jobs.
-- takes:   ids
-- gives:   a row for each that is a graph
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.graph_get_v1(p_ids bigint[])
RETURNS TABLE (job_id bigint, name text, total integer, succeeded integer, failed integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET enable_seqscan = off AS $$
  SELECT g.job_id, g.name, g.total, g.succeeded, g.failed FROM detent.graph g WHERE g.job_id = ANY (p_ids);
$$;

-- node_list: the nodes of a graph.
-- takes:   the graph, the id to continue after, how many at most
-- gives:   nodes by the ids of their jobs
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.node_list_v1(p_graph_id bigint, p_after_id bigint, p_limit integer)
RETURNS TABLE (graph_id bigint, name text, job_id bigint, task text, state text, error text, blocked integer, lost_by bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET enable_seqscan = off AS $$
  SELECT n.graph_id, n.name, n.job_id, j.task, j.state, j.error, n.blocked, n.lost_by
    FROM detent.job j JOIN detent.graph_node n ON n.job_id = j.id
   WHERE j.parent_id = p_graph_id AND j.id > p_after_id ORDER BY j.id LIMIT p_limit;
$$;

-- node_blockers: the nodes for which a node waits.
-- takes:   the job of the node, how many at most
-- gives:   nodes by the ids of their jobs; those in quarantine, failed or cancelled first
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.node_blockers_v1(p_job_id bigint, p_limit integer)
RETURNS TABLE (graph_id bigint, name text, job_id bigint, task text, state text, error text, blocked integer, lost_by bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET enable_seqscan = off AS $$
  SELECT n.graph_id, n.name, n.job_id, j.task, j.state, j.error, n.blocked, n.lost_by
    FROM (SELECT DISTINCT a.after_id FROM detent.job_after a WHERE a.job_id = p_job_id AND NOT a.met) a
    JOIN detent.graph_node n ON n.job_id = a.after_id
    JOIN detent.job j ON j.id = n.job_id
   ORDER BY j.state NOT IN ('quarantined', 'failed', 'cancelled'), j.id LIMIT p_limit;
$$;

-- node_result: the result of a node, for another node of the same graph.
-- takes:   the job that asks, the name of the node
-- gives:   one row with its job, state and result; none if there is no such node
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.node_result_v1(p_job_id bigint, p_name text)
RETURNS TABLE (job_id bigint, state text, result text, dropped_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET enable_seqscan = off AS $$
  SELECT j.id, j.state, j.result, j.result_dropped_at
    FROM detent.graph_node own
    JOIN detent.graph_node n ON n.graph_id = own.graph_id AND n.name = p_name
    JOIN detent.job j ON j.id = n.job_id
   WHERE own.job_id = p_job_id;
$$;

-- What follows from the moves of nodes that one statement has made: `detent.nodes` has their ids. Graphs are taken by id, and
-- their own moves are not noted again.
CREATE OR REPLACE FUNCTION detent.graphs_follow() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  ids   bigint[] := ARRAY(SELECT u.item::bigint FROM unnest(string_to_array(current_setting('detent.nodes'), ',')) AS u (item)
                           WHERE u.item <> '');
  graph bigint;
BEGIN
  PERFORM set_config('detent.nodes', '', true);
  FOR graph IN SELECT DISTINCT n.graph_id FROM detent.graph_node n WHERE n.job_id = ANY (ids) ORDER BY n.graph_id LOOP
    PERFORM detent.graph_follows(graph, ids);
  END LOOP;
END $$;

-- A graph follows those of its nodes, and nodes follow those before them. Everything of a graph happens under the lock of its
-- row. A row of job_after that is met stays so.
CREATE OR REPLACE FUNCTION detent.graph_follows(p_graph_id bigint, p_ids bigint[]) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t      timestamptz;
  g      detent.graph;
  done   bigint[];
  lost   bigint[];
  again  bigint[];
  free   bigint[];
  undone integer;
  node   record;
BEGIN
  PERFORM set_config('detent.graph_at_work', 'on', true);
  PERFORM 1 FROM detent.graph k WHERE k.job_id = p_graph_id FOR UPDATE;
  SELECT coalesce(array_agg(n.job_id) FILTER (WHERE j.state = 'succeeded' AND n.outcome IS DISTINCT FROM 'succeeded'), '{}'),
         coalesce(array_agg(n.job_id ORDER BY n.job_id)
                  FILTER (WHERE j.state IN ('failed', 'cancelled') AND n.outcome IS DISTINCT FROM 'failed'), '{}'),
         coalesce(array_agg(n.job_id)
                  FILTER (WHERE j.state IN ('pending', 'running', 'quarantined') AND n.outcome IS NOT NULL), '{}'),
         count(*) FILTER (WHERE n.outcome = 'failed' AND j.state NOT IN ('failed', 'cancelled')),
         greatest(detent.clock(), max(j.finished_at))
    INTO done, lost, again, undone, t
    FROM detent.graph_node n JOIN detent.job j ON j.id = n.job_id WHERE n.job_id = ANY (p_ids) AND n.graph_id = p_graph_id;
  IF cardinality(again) > 0 THEN
    UPDATE detent.graph_node n SET outcome = NULL, lost_by = NULL WHERE n.job_id = ANY (again);
    PERFORM detent.graph_waits_again(again);
  END IF;
  IF cardinality(lost) > 0 THEN
    UPDATE detent.graph_node n SET outcome = 'failed', lost_by = NULL WHERE n.job_id = ANY (lost);
    FOR node IN
      SELECT n.job_id, n.name, j.state FROM unnest(lost) AS u (id)
        JOIN detent.graph_node n ON n.job_id = u.id JOIN detent.job j ON j.id = u.id ORDER BY n.job_id
    LOOP
      lost := lost || detent.graph_node_lost(
        node.job_id, 'node `' || node.name || '` (job ' || node.job_id || '), which it needs, is ' || node.state, t);
    END LOOP;
  END IF;
  IF cardinality(done) > 0 THEN
    UPDATE detent.graph_node n SET outcome = 'succeeded', lost_by = NULL WHERE n.job_id = ANY (done);
  END IF;
  WITH met AS (
    UPDATE detent.job_after a SET met = true
     WHERE a.after_id = ANY (done || lost) AND NOT a.met AND (a.kind = 'end' OR a.after_id = ANY (done))
    RETURNING a.job_id
  ), less AS (
    UPDATE detent.graph_node n SET blocked = n.blocked - m.n
      FROM (SELECT met.job_id, count(*)::integer AS n FROM met GROUP BY met.job_id) m
     WHERE n.job_id = m.job_id
    RETURNING n.job_id, n.blocked
  )
  SELECT array_agg(less.job_id ORDER BY less.job_id) INTO free FROM less WHERE less.blocked = 0;
  IF free IS NOT NULL THEN
    -- One that was cancelled is due now too, for the case that it is retried.
    PERFORM 1 FROM detent.waiting w WHERE w.job_id = ANY (free) ORDER BY w.job_id FOR UPDATE;
    UPDATE detent.job j SET due_at = t WHERE j.id = ANY (free);
    WITH gone AS (
      DELETE FROM detent.waiting w WHERE w.job_id = ANY (free) RETURNING w.lane_id, w.job_id, w.holds_key, w.expires_at
    )
    INSERT INTO detent.ready (lane_id, ready_at, job_id, holds_key, expires_at)
      SELECT w.lane_id, t, w.job_id, w.holds_key, w.expires_at FROM gone w;
    PERFORM detent.wake_waiters(false);
  END IF;
  UPDATE detent.graph k
     SET succeeded = k.succeeded + cardinality(done), failed = k.failed + cardinality(lost) - undone
   WHERE k.job_id = p_graph_id
  RETURNING k.* INTO g;
  IF g.succeeded + g.failed = g.total THEN
    PERFORM detent.graph_ends(g, t);
  ELSIF undone > 0 THEN
    PERFORM detent.graph_goes_on(p_graph_id, again[1], t);
  END IF;
  PERFORM set_config('detent.graph_at_work', '', true);
END $$;

-- Cancel the nodes that needed the success of this one, and those that need theirs. Gives their jobs.
CREATE OR REPLACE FUNCTION detent.graph_node_lost(p_job_id bigint, p_reason text, t timestamptz) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
  lost bigint[] := '{}';
  id   bigint;
  j    detent.job;
BEGIN
  FOR id IN
    WITH RECURSIVE chain (id) AS (
      SELECT p_job_id
      UNION
      SELECT a.job_id FROM chain c
        JOIN detent.job_after a ON a.after_id = c.id AND a.kind = 'success' AND NOT a.met
        JOIN detent.job k ON k.id = a.job_id AND k.state = 'pending'
    ) SELECT c.id FROM chain c WHERE c.id <> p_job_id ORDER BY c.id
  LOOP
    j := detent.job_lock(id);
    IF j.state = 'pending' THEN
      PERFORM detent.job_put_away(j, 'cancelled', 'cancel', 'system', p_reason, t);
      lost := lost || id;
    END IF;
  END LOOP;
  UPDATE detent.graph_node n SET outcome = 'failed', lost_by = p_job_id WHERE n.job_id = ANY (lost);
  RETURN lost;
END $$;

-- Nodes that had ended are tried again: what only waited for their end, and was cancelled before it began, waits for them again.
CREATE OR REPLACE FUNCTION detent.graph_waits_again(p_ids bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  WITH unmet AS (
    UPDATE detent.job_after a SET met = false
      FROM detent.job j
     WHERE a.after_id = ANY (p_ids) AND a.kind = 'end' AND a.met
       AND j.id = a.job_id AND j.state = 'cancelled' AND j.attempt = 0
    RETURNING a.job_id
  ), more AS (
    UPDATE detent.graph_node n SET blocked = n.blocked + m.n
      FROM (SELECT unmet.job_id, count(*)::integer AS n FROM unmet GROUP BY unmet.job_id) m
     WHERE n.job_id = m.job_id
    RETURNING n.job_id
  )
  UPDATE detent.job j SET due_at = '9999-01-01T00:00:00Z' FROM more WHERE j.id = more.job_id;
END $$;

-- The last node has ended, and the graph with it.
CREATE OR REPLACE FUNCTION detent.graph_ends(g detent.graph, t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  j      detent.job := detent.job_lock(g.job_id);
  rest   text := CASE WHEN g.failed = 0 THEN 'succeeded' ELSE 'failed' END;
  reason text;
  n      timestamptz;
BEGIN
  IF j.state IS DISTINCT FROM 'pending' THEN
    RETURN;
  END IF;
  n := detent.job_now(j, t);
  IF g.failed > 0 THEN
    SELECT 'node `' || x.name || '` (job ' || k.id || ') is ' || k.state INTO reason
      FROM detent.graph_node x JOIN detent.job k ON k.id = x.job_id
     WHERE x.graph_id = g.job_id AND x.outcome = 'failed'
     ORDER BY x.lost_by IS NOT NULL, k.finished_at, k.id LIMIT 1;
  END IF;
  PERFORM detent.job_log(j, rest, CASE WHEN g.failed = 0 THEN 'complete' ELSE 'fail_with_node' END, 'system', reason, n);
  PERFORM detent.queue_leave(j);
  UPDATE detent.job k
     SET state = rest, finished_at = n, error = reason, committed_at = CASE WHEN g.failed = 0 THEN n END
   WHERE k.id = j.id;
END $$;

-- A node was retried: a graph that has failed because of it goes on.
CREATE OR REPLACE FUNCTION detent.graph_goes_on(p_graph_id bigint, p_node_id bigint, t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  j detent.job := detent.job_lock(p_graph_id);
BEGIN
  IF j.state = 'failed' THEN
    PERFORM detent.job_back(
      j, coalesce((SELECT l.actor FROM detent.transition_log l WHERE l.job_id = p_node_id ORDER BY l.n DESC LIMIT 1), 'system'),
      (SELECT 'node `' || n.name || '` (job ' || n.job_id || ') is tried again' FROM detent.graph_node n WHERE n.job_id = p_node_id),
      t);
  END IF;
END $$;

-- Cancel the nodes of a graph that have not ended; those that run are asked to stop. One that is locked may be just ending: it is
-- not waited for, since whoever ends it may wait for the graph, and left to tree_cancel_step.
CREATE OR REPLACE FUNCTION detent.graph_cancel(p_graph_id bigint, p_actor text, p_reason text, p_undo boolean, t timestamptz)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  ids     bigint[];
  node_id bigint;
  j       detent.job;
  missed  boolean := false;
  reason  text := concat_ws(': ', 'with job ' || p_graph_id, p_reason);
BEGIN
  PERFORM 1 FROM detent.graph k WHERE k.job_id = p_graph_id FOR UPDATE;
  PERFORM set_config('detent.graph_at_work', 'on', true);
  ids := ARRAY(SELECT k.id FROM detent.job k WHERE k.parent_id = p_graph_id AND k.state IN ('pending', 'running') ORDER BY k.id);
  FOREACH node_id IN ARRAY ids LOOP
    SELECT k.* INTO j FROM detent.job k WHERE k.id = node_id;
    IF j.state = 'pending' THEN
      j := detent.job_lock(node_id);
    ELSE
      SELECT k.* INTO j FROM detent.job k WHERE k.id = node_id FOR UPDATE SKIP LOCKED;
    END IF;
    IF j.id IS NULL THEN
      missed := true;
    ELSE
      PERFORM detent.job_cancel_one(j, p_actor, reason, p_undo, t, p_graph_id);
    END IF;
  END LOOP;
  PERFORM detent.graph_follows(p_graph_id, ids);
  IF missed THEN
    PERFORM detent.tree_cancel_add(p_graph_id, p_graph_id, p_actor, reason, p_undo);
  END IF;
END $$;

-- Retry the nodes of a graph that have ended without success. If there is none, the graph ends at once.
CREATE OR REPLACE FUNCTION detent.graph_retry(p_graph_id bigint, p_actor text, p_reason text, t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  ids bigint[];
  id  bigint;
  j   detent.job;
BEGIN
  PERFORM 1 FROM detent.graph k WHERE k.job_id = p_graph_id FOR UPDATE;
  PERFORM set_config('detent.graph_at_work', 'on', true);
  ids := ARRAY(SELECT k.id FROM detent.job k WHERE k.parent_id = p_graph_id AND k.state IN ('failed', 'cancelled', 'quarantined')
                ORDER BY k.id);
  PERFORM detent.graph_waits_again(ids);
  FOREACH id IN ARRAY ids LOOP
    j := detent.job_lock(id);
    IF detent.is_job_move('retry', j.state, 'pending') THEN
      PERFORM detent.job_back(j, p_actor, p_reason, t);
    END IF;
  END LOOP;
  PERFORM detent.graph_follows(p_graph_id, ids);
END $$;

-- Set what a graph and its nodes count from the nodes and their jobs, for a repair, and do what follows from it.
CREATE OR REPLACE FUNCTION detent.graph_count_anew(p_graph_id bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, detent, pg_temp SET enable_seqscan = off AS $$
DECLARE
  t    timestamptz := detent.clock();
  ids  bigint[] := ARRAY(SELECT n.job_id FROM detent.graph_node n WHERE n.graph_id = p_graph_id);
  free bigint[];
BEGIN
  PERFORM 1 FROM detent.graph k WHERE k.job_id = p_graph_id FOR UPDATE;
  UPDATE detent.job_after a SET met = true
    FROM detent.job j
   WHERE a.job_id = ANY (ids) AND NOT a.met AND j.id = a.after_id
     AND (j.state = 'succeeded' OR a.kind = 'end' AND j.state IN ('failed', 'cancelled'));
  UPDATE detent.graph_node n
     SET blocked = (SELECT count(*) FROM detent.job_after a WHERE a.job_id = n.job_id AND NOT a.met)
   WHERE n.graph_id = p_graph_id;
  UPDATE detent.graph g
     SET succeeded = (SELECT count(*) FROM detent.graph_node n WHERE n.graph_id = p_graph_id AND n.outcome = 'succeeded'),
         failed = (SELECT count(*) FROM detent.graph_node n WHERE n.graph_id = p_graph_id AND n.outcome = 'failed')
   WHERE g.job_id = p_graph_id;
  free := ARRAY(SELECT n.job_id FROM detent.graph_node n JOIN detent.job j ON j.id = n.job_id
                  JOIN detent.waiting w ON w.job_id = n.job_id
                 WHERE n.graph_id = p_graph_id AND n.blocked = 0 AND j.state = 'pending' AND j.due_at >= detent.never());
  UPDATE detent.job j SET due_at = t WHERE j.id = ANY (free);
  WITH gone AS (
    DELETE FROM detent.waiting w WHERE w.job_id = ANY (free) RETURNING w.lane_id, w.job_id, w.holds_key, w.expires_at
  )
  INSERT INTO detent.ready (lane_id, ready_at, job_id, holds_key, expires_at)
    SELECT w.lane_id, t, w.job_id, w.holds_key, w.expires_at FROM gone w;
  PERFORM detent.graph_follows(p_graph_id, ids);
END $$;
