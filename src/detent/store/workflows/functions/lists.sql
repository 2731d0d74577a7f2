-- workflow_get: workflows.
-- takes:   jobs
-- gives:   a row for each that has recorded something; when and for what it is parked only if it is
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.workflow_get_v1(p_ids bigint[])
RETURNS TABLE (job_id bigint, version integer, generation integer, root_id bigint, parent_id bigint, depth integer,
               forked_from bigint, steps integer, parks integer, parked_at timestamptz, parked_for text,
               due_at timestamptz, undoing_since timestamptz, undo_cause text, undo_of bigint, undone_by bigint,
               undone_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT w.job_id, w.version, w.generation, w.root_id, j.parent_id, w.depth, w.forked_from,
           (SELECT count(*)::integer FROM detent.workflow_step s WHERE s.job_id = w.job_id AND s.generation = w.generation),
           w.parks, CASE WHEN p.is_parked THEN w.parked_at END, CASE WHEN p.is_parked THEN w.parked_for END,
           CASE WHEN p.is_parked AND j.due_at < detent.never() THEN j.due_at END, w.undoing_since,
           w.undo_cause, w.undo_of, w.undone_by,
           (SELECT min(s.done_at) FROM detent.workflow_step s
             WHERE s.job_id IN (w.job_id, w.undone_by) AND s.generation = w.generation AND s.path = '~undone')
      FROM detent.workflow w JOIN detent.job j ON j.id = w.job_id
     CROSS JOIN LATERAL (SELECT detent.is_parked(j, w.parked_attempt) AS is_parked) p
     WHERE w.job_id = ANY (p_ids);
END $$;

-- workflow_arguments: what the steps on record of a workflow may have seen, besides the arguments of its job.
-- takes:   a job
-- gives:   the arguments of its current generation, and those of the workflows from which it was forked, 16 at most
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.workflow_arguments_v1(p_job_id bigint) RETURNS SETOF text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  w detent.workflow;
BEGIN
  FOR n IN 0 .. 16 LOOP
    SELECT f.* INTO w FROM detent.workflow f WHERE f.job_id = p_job_id;
    IF n > 0 THEN
      RETURN QUERY SELECT j.payload FROM detent.job j WHERE j.id = p_job_id;
    END IF;
    IF w.payload IS NOT NULL THEN
      RETURN NEXT w.payload;
    END IF;
    EXIT WHEN w.forked_from IS NULL;
    p_job_id := w.forked_from;
  END LOOP;
END $$;

-- Whether a job is parked, whose workflow parked last with that attempt. A job that is held back by a limit is not.
CREATE OR REPLACE FUNCTION detent.is_parked(j detent.job, p_parked_attempt integer) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN j.state = 'pending' AND coalesce(j.ended = p_parked_attempt, false)
     AND EXISTS (SELECT 1 FROM detent.waiting q WHERE q.job_id = j.id AND q.limit_key IS NULL);
END $$;

-- workflow_list: a portion of the workflows that have recorded something, by id from the largest on.
-- takes:   which: the task, the version, the state of the job, whether only parked ones, the tenant, the earliest time of
--          creation (null: any); the id below which to look; how many to look at
-- gives:   those that were looked at, and whether each fits
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.workflow_list_v1(
  p_task text, p_version integer, p_state text, p_parked boolean, p_tenant text, p_since timestamptz, p_before bigint,
  p_limit integer
) RETURNS TABLE (job_id bigint, fits boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT w.job_id, (p_task IS NULL OR j.task = p_task) AND (p_version IS NULL OR w.version = p_version)
           AND (p_state IS NULL OR j.state = p_state) AND (p_tenant IS NULL OR j.tenant = p_tenant)
           AND (p_since IS NULL OR j.created_at >= p_since) AND (NOT p_parked OR detent.is_parked(j, w.parked_attempt))
      FROM detent.workflow w JOIN detent.job j ON j.id = w.job_id
     WHERE w.job_id < p_before ORDER BY w.job_id DESC LIMIT p_limit;
END $$;

-- step_list: the steps of a generation of a workflow.
-- takes:   a job; the generation (null: the current one); the time at which they were on record (null: now); the path to continue
--          after; how many
-- gives:   them, in the order of their paths
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.step_list_v1(
  p_job_id bigint, p_generation integer, p_at timestamptz, p_after text, p_limit integer
) RETURNS SETOF detent.workflow_step
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  p_generation := coalesce(p_generation, (SELECT w.generation FROM detent.workflow w WHERE w.job_id = p_job_id));
  RETURN QUERY
    SELECT s.* FROM detent.workflow_step s
     WHERE s.job_id = p_job_id AND s.generation = p_generation AND s.path > p_after AND (p_at IS NULL OR s.done_at <= p_at)
     ORDER BY s.path LIMIT p_limit;
END $$;

-- signal_list: the signals of a workflow.
-- takes:   a job, the number to continue after, how many, whether only those that no step has taken
-- gives:   them, oldest first, with the step that has taken each
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.signal_list_v1(p_job_id bigint, p_after bigint, p_limit integer, p_unread boolean DEFAULT false)
RETURNS TABLE (job_id bigint, name text, seq bigint, payload text, dedupe text, actor text, reason text,
               sent_at timestamptz, path text, taken_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  IF p_unread THEN
    RETURN QUERY
      SELECT g.job_id, g.name, g.seq, g.payload, g.dedupe, g.actor, g.reason, g.sent_at, NULL::text, NULL::timestamptz
        FROM (SELECT x.* FROM detent.workflow_unread x WHERE x.job_id = p_job_id AND x.seq > p_after
               ORDER BY x.seq LIMIT p_limit) u
       CROSS JOIN LATERAL (
         SELECT y.* FROM detent.workflow_signal y WHERE y.job_id = p_job_id AND y.name = u.name AND y.seq = u.seq) g
       ORDER BY g.seq;
    RETURN;
  END IF;
  RETURN QUERY
    SELECT g.job_id, g.name, g.seq, g.payload, g.dedupe, g.actor, g.reason, g.sent_at, s.path, s.done_at
      FROM (SELECT x.* FROM detent.workflow_signal x WHERE x.job_id = p_job_id AND x.seq > p_after
             ORDER BY x.seq LIMIT p_limit) g
      LEFT JOIN LATERAL (
        SELECT y.path, y.done_at FROM detent.workflow_step y
         WHERE y.job_id = g.job_id AND y.signal_name = g.name AND y.signal_seq = g.seq AND y.signal_seq IS NOT NULL
         ORDER BY y.generation LIMIT 1) s ON true
     ORDER BY g.seq;
END $$;

-- wait_list: a portion of what parked workflows wait for, by job and number.
-- takes:   a job, a signal, a tenant (null is any); job and number to continue after; how many to look at
-- gives:   those that were looked at, and whether each is of a job that is parked: one that was woken has them until it is claimed
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.wait_list_v1(
  p_job_id bigint, p_signal text, p_tenant text, p_after_job bigint, p_after_n integer, p_limit integer
) RETURNS TABLE (job_id bigint, n integer, task text, tenant text, kind text, name text, since timestamptz,
                 due_at timestamptz, version integer, is_parked boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT x.job_id, x.n, j.task, x.tenant, x.kind, x.name, w.parked_at, x.due_at, w.version,
           coalesce(detent.is_parked(j, w.parked_attempt), false)
      FROM detent.wait_portion(p_job_id, p_signal, p_tenant, p_after_job, p_after_n, p_limit) x
      LEFT JOIN LATERAL (SELECT f.* FROM detent.workflow f WHERE f.job_id = x.job_id) w ON true
      LEFT JOIN LATERAL (SELECT k.* FROM detent.job k WHERE k.id = x.job_id) j ON true
     ORDER BY x.job_id, x.n;
END $$;

-- The wait rows that wait_list looks at. Each choice has an index of its own; the order names all its columns, so that the planner
-- takes no other.
CREATE OR REPLACE FUNCTION detent.wait_portion(
  p_job_id bigint, p_signal text, p_tenant text, p_after_job bigint, p_after_n integer, p_limit integer
) RETURNS SETOF detent.workflow_wait
LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF p_job_id IS NOT NULL THEN
    RETURN QUERY
      SELECT x.* FROM detent.workflow_wait x
       WHERE x.job_id = p_job_id AND (x.job_id, x.n) > (p_after_job, p_after_n)
         AND (p_signal IS NULL OR x.kind = 'signal' AND x.name = p_signal) AND (p_tenant IS NULL OR x.tenant = p_tenant)
       ORDER BY x.job_id, x.n LIMIT p_limit;
  ELSIF p_signal IS NOT NULL AND p_tenant IS NOT NULL THEN
    RETURN QUERY
      SELECT x.* FROM detent.workflow_wait x
       WHERE x.kind = 'signal' AND (x.tenant, x.name, x.job_id, x.n) > (p_tenant, p_signal, p_after_job, p_after_n)
         AND (x.tenant, x.name) <= (p_tenant, p_signal)
       ORDER BY x.tenant, x.name, x.job_id, x.n LIMIT p_limit;
  ELSIF p_signal IS NOT NULL THEN
    RETURN QUERY
      SELECT x.* FROM detent.workflow_wait x
       WHERE x.kind = 'signal' AND (x.name, x.job_id, x.n) > (p_signal, p_after_job, p_after_n) AND x.name <= p_signal
       ORDER BY x.name, x.job_id, x.n LIMIT p_limit;
  ELSIF p_tenant IS NOT NULL THEN
    RETURN QUERY
      SELECT x.* FROM detent.workflow_wait x
       WHERE (x.tenant, x.job_id, x.n) > (p_tenant, p_after_job, p_after_n) AND x.tenant <= p_tenant
       ORDER BY x.tenant, x.job_id, x.n LIMIT p_limit;
  ELSE
    RETURN QUERY
      SELECT x.* FROM detent.workflow_wait x
       WHERE (x.job_id, x.n) > (p_after_job, p_after_n)
       ORDER BY x.job_id, x.n LIMIT p_limit;
  END IF;
END $$;

-- child_groups: the groups of children of a workflow.
-- takes:   the parent
-- gives:   those of its current generation, by path, 1,000 at most
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.child_groups_v1(p_parent_id bigint) RETURNS SETOF detent.child_group
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
    SELECT g.* FROM detent.child_group g
     WHERE g.parent_id = p_parent_id
       AND g.generation = (SELECT w.generation FROM detent.workflow w WHERE w.job_id = p_parent_id)
     ORDER BY g.path LIMIT 1000;
END $$;

-- child_list: the children of a workflow.
-- takes:   the parent; a group of its current generation, by the path of its step; a state (null is any); the id to continue after;
--          how many
-- gives:   their ids, in order
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.child_list_v1(
  p_parent_id bigint, p_path text, p_state text, p_after_id bigint, p_limit integer
) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  last bigint := 9223372036854775807;
BEGIN
  IF p_path IS NOT NULL THEN
    SELECT greatest(p_after_id, g.first_id - 1), g.first_id + g.total - 1 INTO p_after_id, last
      FROM detent.child_group g JOIN detent.workflow w ON w.job_id = g.parent_id AND w.generation = g.generation
     WHERE g.parent_id = p_parent_id AND g.path = p_path;
  END IF;
  RETURN QUERY
    SELECT j.id FROM detent.job j
     WHERE j.parent_id = p_parent_id AND j.id > p_after_id AND j.id <= last AND (p_state IS NULL OR j.state = p_state)
     ORDER BY j.id LIMIT p_limit;
END $$;

-- workflow_versions: how many workflows that have not ended began under each version.
-- takes:   a task (null is any)
-- gives:   task, version and number, by task and version
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.workflow_versions_v1(p_task text)
RETURNS TABLE (task text, version integer, workflows bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
#variable_conflict use_column
BEGIN
  -- From the jobs that have not ended, however many have.
  RETURN QUERY
    SELECT j.task, w.version, count(*)
      FROM (SELECT q.job_id FROM detent.waiting q
            UNION ALL SELECT r.job_id FROM detent.ready r
            UNION ALL SELECT d.job_id FROM detent.dead d
            UNION ALL SELECT k.id FROM detent.lease l CROSS JOIN LATERAL unnest(l.job_ids) AS held (id)
                        JOIN detent.job k ON k.id = held.id AND k.lease_id = l.id AND k.state = 'running') o
      JOIN detent.workflow w ON w.job_id = o.job_id
      JOIN detent.job j ON j.id = w.job_id
     WHERE p_task IS NULL OR j.task = p_task
     GROUP BY j.task, w.version ORDER BY j.task, w.version;
END $$;
