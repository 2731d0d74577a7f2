-- tree_cancel_step: cancel children of jobs that were cancelled.
-- takes:   how many children to look at, at most
-- gives:   how many were looked at, and how many jobs are done with; none: nothing is left, or others have it locked
-- locks:   rows of tree_cancel that no other session has locked; the children, by id, each with its ready or waiting row first
-- refuses: nothing: a child that has ended stays as it is, and its own children are cancelled
-- A job is marked before its children are looked at, and a job that is marked spawns none: both under the lock of its row. So none
-- is missed. Detached children belong to no group and live on.
-- differs: on SQLite, one call goes on with the children of those that it has cancelled
CREATE OR REPLACE FUNCTION detent.tree_cancel_step_v1(p_limit integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  node   detent.tree_cancel;
  nodes  detent.tree_cancel[] := '{}';
  ids    bigint[] := '{}';
  places integer[] := '{}';
  more   bigint[];
  looked integer := 0;
  item   record;
  j      detent.job;
BEGIN
  FOR node IN SELECT c.* FROM detent.tree_cancel c ORDER BY c.n LIMIT p_limit FOR UPDATE SKIP LOCKED LOOP
    more := ARRAY(SELECT k.id FROM detent.job k
                   WHERE k.parent_id = node.job_id AND k.id > node.after_id AND k.id <= node.until_id
                   ORDER BY k.id LIMIT p_limit - looked);
    nodes := nodes || node;
    ids := ids || more;
    places := places || array_fill(cardinality(nodes), ARRAY[cardinality(more)]);
    IF cardinality(more) < p_limit - looked THEN
      DELETE FROM detent.tree_cancel c WHERE c.n = node.n;
    ELSE
      UPDATE detent.tree_cancel c SET after_id = more[cardinality(more)] WHERE c.n = node.n;
    END IF;
    looked := looked + greatest(1, cardinality(more));
    EXIT WHEN looked >= p_limit;
  END LOOP;
  PERFORM detent.jobs_lock(ids);
  FOR item IN SELECT u.id, u.place FROM unnest(ids, places) AS u (id, place) ORDER BY u.id LOOP
    node := nodes[item.place];
    CONTINUE WHEN NOT detent.is_cancelled_with(item.id, node.job_id);
    SELECT k.* INTO j FROM detent.job k WHERE k.id = item.id;
    IF j.state IN ('pending', 'running') AND j.committed_at IS NULL THEN
      PERFORM detent.job_cancel_one(j, node.actor, node.reason, node.undo, detent.clock(), node.root_id);
    ELSIF j.id IS NOT NULL THEN
      -- Also if it is cancelled: a child that was given up (discard) has left its own children alone.
      PERFORM detent.tree_cancel_add(j.id, node.root_id, node.actor, node.reason, node.undo);
    END IF;
  END LOOP;
  RETURN looked;
END $$;

-- tree_cancel_skip: pass over the next child that a step would look at, since it makes every step fail.
-- takes:   nothing
-- gives:   the child; null if there is none
-- locks:   a row of tree_cancel that no other session has locked
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.tree_cancel_skip_v1() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  node detent.tree_cancel;
  child bigint;
BEGIN
  SELECT c.* INTO node FROM detent.tree_cancel c ORDER BY c.n LIMIT 1 FOR UPDATE SKIP LOCKED;
  SELECT k.id INTO child FROM detent.job k
   WHERE k.parent_id = node.job_id AND k.id > node.after_id AND k.id <= node.until_id ORDER BY k.id LIMIT 1;
  UPDATE detent.tree_cancel c SET after_id = child WHERE c.n = node.n AND child IS NOT NULL;
  RETURN child;
END $$;

-- tree_cancel_count: how much of the cancel of a tree is left.
-- takes:   the job with which it began, and how many to count at most
-- gives:   how many jobs there are whose children have yet to be looked at
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.tree_cancel_count_v1(p_root_id bigint, p_limit integer) RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET enable_seqscan = off AS $$
  SELECT count(*)::integer FROM (SELECT 1 FROM detent.tree_cancel c WHERE c.root_id = p_root_id LIMIT p_limit) s
$$;

-- Have the children of a job cancelled, if it has any. One look into the index of parents. Those that are spawned after a retry have
-- larger ids.
CREATE OR REPLACE FUNCTION detent.tree_cancel_add(p_job_id bigint, p_root_id bigint, p_actor text, p_reason text, p_undo boolean)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  last bigint;
BEGIN
  SELECT k.id INTO last FROM detent.job k WHERE k.parent_id = p_job_id ORDER BY k.id DESC LIMIT 1;
  IF FOUND THEN
    INSERT INTO detent.tree_cancel (root_id, job_id, until_id, actor, reason, undo)
      VALUES (p_root_id, p_job_id, last, p_actor, p_reason, p_undo);
    PERFORM detent.wake_waiters(false);
  END IF;
END $$;

-- Whether a child is cancelled with its parent: it belongs to a group of children, or it is a node of a graph.
CREATE OR REPLACE FUNCTION detent.is_cancelled_with(p_job_id bigint, p_parent_id bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN coalesce((SELECT p_job_id < g.first_id + g.total FROM detent.child_group g
                    WHERE g.parent_id = p_parent_id AND g.first_id <= p_job_id ORDER BY g.first_id DESC LIMIT 1), false)
      OR EXISTS (SELECT 1 FROM detent.graph_node n WHERE n.job_id = p_job_id);
END $$;

-- Whether steps of a workflow have yet to be undone before it may be cancelled. If its function has ended as cancelled or waits
-- (p_outcome), and the undo has not begun, the workflow does not want any.
CREATE OR REPLACE FUNCTION detent.undo_is_open(j detent.job, w detent.workflow, p_outcome text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF w.job_id IS NULL OR w.undo_of IS NOT NULL OR j.cancel_undo IS FALSE THEN
    RETURN false;
  END IF;
  RETURN (w.undoing_since IS NOT NULL
          OR coalesce(p_outcome NOT IN ('cancelled', 'parked'), true) AND EXISTS (
               SELECT 1 FROM detent.workflow_step s
                WHERE s.job_id = j.id AND s.generation = w.generation AND s.undo AND s.error IS NULL))
     AND NOT EXISTS (SELECT 1 FROM detent.workflow_step s
                      WHERE s.job_id = j.id AND s.generation = w.generation AND s.path = '~undone');
END $$;
