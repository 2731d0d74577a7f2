-- job_prune: delete finished jobs with all their records.
-- takes:   the horizon, the place of the job to continue after (null: the first), how many jobs to read, who; of which
--          states (null is any)
-- gives:   how many jobs went, and the place to continue after, null at the end
-- locks:   the jobs that go; whatever others hold stays for a later pass
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_prune_v1(
  p_before timestamptz, p_after_at timestamptz, p_after_id bigint, p_limit integer, p_actor text, p_states text[] DEFAULT NULL
) RETURNS TABLE (jobs integer, next_at timestamptz, next_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t      timestamptz := detent.clock();
  looked bigint[];
  old    bigint[];
BEGIN
  INSERT INTO detent.horizon (before, actor, at)
    SELECT p_before, p_actor, t WHERE NOT EXISTS (SELECT 1 FROM detent.horizon h WHERE h.before >= p_before);
  SELECT c.ids, c.next_at, c.next_id INTO looked, next_at, next_id
    FROM detent.jobs_created_before(p_before, p_after_at, p_after_id, p_limit) c;
  old := ARRAY(
    SELECT j.id FROM detent.job j
     WHERE j.id = ANY (looked) AND detent.job_may_go(j.id, j.finished_at, j.run_id, j.parent_id, p_before)
       AND j.finished_at >= j.created_at AND (p_states IS NULL OR j.state = ANY (p_states))
       FOR UPDATE SKIP LOCKED);
  PERFORM detent.jobs_go(old);
  jobs := cardinality(old);
  RETURN NEXT;
END $$;

-- job_prunable: the finished jobs that job_prune would delete.
-- takes:   the horizon, the place of the job to continue after (null: the first), how many jobs to read; of which states
--          (null is any)
-- gives:   their ids, and the place to continue after, null at the end
-- locks:   these jobs, so that nothing is added to their records until they are gone; rows that others hold are skipped
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_prunable_v1(
  p_before timestamptz, p_after_at timestamptz, p_after_id bigint, p_limit integer, p_states text[] DEFAULT NULL
) RETURNS TABLE (ids bigint[], next_at timestamptz, next_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  looked bigint[];
BEGIN
  SELECT c.ids, c.next_at, c.next_id INTO looked, next_at, next_id
    FROM detent.jobs_created_before(p_before, p_after_at, p_after_id, p_limit) c;
  ids := ARRAY(
    SELECT j.id FROM detent.job j
     WHERE j.id = ANY (looked) AND detent.job_may_go(j.id, j.finished_at, j.run_id, j.parent_id, p_before)
       AND j.finished_at >= j.created_at AND (p_states IS NULL OR j.state = ANY (p_states))
     ORDER BY j.id FOR UPDATE SKIP LOCKED);
  RETURN NEXT;
END $$;

-- job_drop: delete these finished jobs with all their records.
-- takes:   the jobs, the horizon that they must be past, who; why (null: no line in the record)
-- gives:   how many went
-- locks:   the jobs that go; whatever others hold stays for a later pass
-- refuses: nothing; what may not go stays
CREATE OR REPLACE FUNCTION detent.job_drop_v1(
  p_ids bigint[], p_before timestamptz, p_actor text, p_reason text DEFAULT NULL
) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  old bigint[];
BEGIN
  INSERT INTO detent.horizon (before, actor, at)
    SELECT p_before, p_actor, detent.clock() WHERE NOT EXISTS (SELECT 1 FROM detent.horizon h WHERE h.before >= p_before);
  old := ARRAY(
    SELECT j.id FROM detent.job j WHERE j.id = ANY (p_ids) AND detent.job_may_go(j.id, j.finished_at, j.run_id, j.parent_id, p_before) AND j.finished_at >= j.created_at
     ORDER BY j.id FOR UPDATE SKIP LOCKED);
  PERFORM detent.jobs_go(old);
  IF cardinality(old) > 0 AND p_reason IS NOT NULL THEN
    INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, metadata, at)
      VALUES ('database', 'retention', 'kept', 'deleted', 'drop', p_actor, p_reason,
              '{"jobs":' || cardinality(old) || '}', detent.clock());
  END IF;
  RETURN cardinality(old);
END $$;

-- Read jobs that were created before a time, in the order of their creation, from after a place on (null: the first).
--
-- Gives their ids, and the place of the last one if there may be more. Jobs that are newer cost nothing.
CREATE OR REPLACE FUNCTION detent.jobs_created_before(
  p_before timestamptz, p_after_at timestamptz, p_after_id bigint, p_limit integer,
  OUT ids bigint[], OUT next_at timestamptz, OUT next_id bigint
)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  p_after_at := coalesce(p_after_at, '-infinity');
  p_after_id := coalesce(p_after_id, 0);
  -- Spans of one time may overlap, so an id may be found twice.
  ids := ARRAY(
    SELECT o.id
      FROM (SELECT DISTINCT ON (s.created_at, s.block, j.id) j.id
              FROM detent.job_span s
             CROSS JOIN LATERAL (
               SELECT k.id FROM detent.job k
                WHERE k.id BETWEEN s.first_id AND s.last_id AND k.created_at = s.created_at
                  AND (k.created_at, k.id) > (p_after_at, p_after_id) OFFSET 0) j
             WHERE (s.created_at, s.block) >= (p_after_at, p_after_id >> 10) AND s.created_at < p_before
             ORDER BY s.created_at, s.block, j.id LIMIT p_limit) o);
  IF cardinality(ids) = p_limit AND p_limit > 0 THEN
    SELECT j.created_at, j.id INTO next_at, next_id FROM detent.job j WHERE j.id = ids[p_limit];
  END IF;
END $$;

-- Whether a job that finished then, for that run, is past a horizon of retention. What a run that is there was made by goes
-- with the run, not before it; and children stay while their parent may ask for them (`child_is_needed`), nodes as long as their graph. A job stays while
-- another undoes its steps, and that one stays as long as the first. (Not the whole
-- job: to hand it over would read its payload.)
CREATE OR REPLACE FUNCTION detent.job_may_go(
  p_job_id bigint, p_finished_at timestamptz, p_run_id bigint, p_parent_id bigint, p_before timestamptz
) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN p_finished_at < p_before
     AND (p_run_id IS NULL OR NOT EXISTS (SELECT 1 FROM detent.batch_run b WHERE b.id = p_run_id))
     AND (p_parent_id IS NULL OR NOT detent.child_is_needed(p_job_id, p_parent_id)
          AND NOT EXISTS (SELECT 1 FROM detent.graph g WHERE g.job_id = p_parent_id))
     AND NOT EXISTS (
       SELECT 1 FROM detent.workflow w
        WHERE w.job_id = p_job_id AND (
          EXISTS (SELECT 1 FROM detent.job u WHERE u.id = w.undone_by AND u.state IN ('pending', 'running', 'quarantined'))
          OR EXISTS (SELECT 1 FROM detent.job u WHERE u.id = w.undo_of)));
END $$;

-- Whether the parent of a child may still ask for it: it has not come to rest for good, and the child is in a group of its current
-- generation. After a rewind the steps of that generation may be copies, which read groups of earlier ones.
CREATE OR REPLACE FUNCTION detent.child_is_needed(p_job_id bigint, p_parent_id bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT 1 FROM detent.job p WHERE p.id = p_parent_id AND p.state IN ('pending', 'running', 'quarantined'))
     AND EXISTS (
       SELECT 1 FROM (SELECT x.generation, x.first_id + x.total AS until_id FROM detent.child_group x
                       WHERE x.parent_id = p_parent_id AND x.first_id <= p_job_id ORDER BY x.first_id DESC LIMIT 1) g
         LEFT JOIN detent.workflow w ON w.job_id = p_parent_id
        WHERE p_job_id < g.until_id AND (w.job_id IS NULL OR g.generation = w.generation OR w.seeds IS NOT NULL));
END $$;

-- Delete jobs, which are locked and may go, with all their records. The job first: the guards let records go only when their
-- job is gone.
CREATE OR REPLACE FUNCTION detent.jobs_go(p_ids bigint[]) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  newest bigint;
  times  timestamptz[];
  blocks bigint[];
BEGIN
  IF cardinality(p_ids) = 0 THEN
    RETURN;
  END IF;
  -- Jobs that have succeeded and are not counted yet are counted before they go. Those that end meanwhile are not waited for.
  newest := (SELECT max(b.n) FROM detent.succeeded_batch b);
  IF newest IS NOT NULL THEN
    -- Wait for a worker that is adding up counts: it holds batches that cannot be added up here, and it may still roll back.
    -- It also prevents deadlocks, since counts may be added up several times in this transaction.
    PERFORM pg_advisory_xact_lock(hashtextextended('detent.counts_fold', 0));
  END IF;
  WHILE EXISTS (SELECT 1 FROM detent.succeeded_batch b WHERE b.n <= newest) AND detent.counts_fold_v1(100) > 0 LOOP
  END LOOP;
  -- A slot that a claim is deleting is left to it. To wait for it would be a deadlock: the claim deletes other slots too.
  DELETE FROM detent.limit_slot WHERE ctid = ANY (ARRAY(
    SELECT s.ctid FROM detent.job j
     CROSS JOIN LATERAL (
       SELECT j.limit_key WHERE j.limit_key IS NOT NULL
       UNION SELECT m.limit_key FROM detent.limit_member m WHERE m.kind = 'task' AND m.name = j.task
       UNION SELECT m.limit_key FROM detent.limit_member m WHERE m.kind = 'queue' AND m.name = j.queue) k
      JOIN detent.limit_slot s ON s.limit_key = k.limit_key AND s.job_id = j.id
     WHERE j.id = ANY (p_ids) FOR UPDATE OF s SKIP LOCKED));
  -- Locked in order: two transactions that delete the jobs of one span must not both leave it to the other.
  SELECT array_agg(s.created_at), array_agg(s.block) INTO times, blocks
    FROM (SELECT s.created_at, s.block
            FROM (SELECT DISTINCT j.created_at, j.id >> 10 AS block FROM detent.job j WHERE j.id = ANY (p_ids)) o
            JOIN detent.job_span s ON s.created_at = o.created_at AND s.block = o.block
           ORDER BY s.created_at, s.block FOR UPDATE OF s) s;
  WITH gone AS (
    DELETE FROM detent.job j WHERE j.id = ANY (p_ids) RETURNING j.tenant, j.queue, j.task, j.state, j.finished_at
  )
  INSERT INTO detent.finished_delta (tenant, queue, task, state, jobs)
    SELECT g.tenant, g.queue, g.task, g.state, -count(*) FROM gone g WHERE g.finished_at IS NOT NULL
     GROUP BY g.tenant, g.queue, g.task, g.state;
  DELETE FROM detent.job_span s USING unnest(times, blocks) AS o (created_at, block)
   WHERE s.created_at = o.created_at AND s.block = o.block AND NOT EXISTS (
     SELECT 1 FROM detent.job j WHERE j.id BETWEEN s.first_id AND s.last_id AND j.created_at = s.created_at);
  DELETE FROM detent.execution e WHERE e.job_id = ANY (p_ids);
  DELETE FROM detent.event e WHERE e.job_id = ANY (p_ids);
  DELETE FROM detent.transition_log l WHERE l.job_id = ANY (p_ids);
  DELETE FROM detent.dead d WHERE d.job_id = ANY (p_ids);
  DELETE FROM detent.unsuccessful u WHERE u.state IN ('failed', 'cancelled') AND u.job_id = ANY (p_ids);
  DELETE FROM detent.failure_report u WHERE u.job_id = ANY (p_ids);
  DELETE FROM detent.ops_run r WHERE r.job_id = ANY (p_ids);
  IF EXISTS (SELECT 1 FROM detent.workflow) OR EXISTS (SELECT 1 FROM detent.workflow_signal) THEN
    DELETE FROM detent.workflow w WHERE w.job_id = ANY (p_ids);
    DELETE FROM detent.workflow_step s WHERE s.job_id = ANY (p_ids);
    DELETE FROM detent.workflow_step_begun b WHERE b.job_id = ANY (p_ids);
    DELETE FROM detent.workflow_wait x WHERE x.job_id = ANY (p_ids);
    DELETE FROM detent.workflow_signal g WHERE g.job_id = ANY (p_ids);
    DELETE FROM detent.workflow_unread u WHERE u.job_id = ANY (p_ids);
    DELETE FROM detent.child_group g WHERE g.parent_id = ANY (p_ids);
    DELETE FROM detent.wake_request r WHERE r.job_id = ANY (p_ids);
    DELETE FROM detent.tree_cancel c WHERE c.job_id = ANY (p_ids);
  END IF;
  IF EXISTS (SELECT 1 FROM detent.graph) THEN
    DELETE FROM detent.job_after a USING detent.graph_node n WHERE n.graph_id = ANY (p_ids) AND a.job_id = n.job_id;
    DELETE FROM detent.graph_node n WHERE n.graph_id = ANY (p_ids);
    DELETE FROM detent.graph g WHERE g.job_id = ANY (p_ids);
  END IF;
END $$;

-- result_drop: drop results that were to be kept for a time only; the jobs stay.
-- takes:   the place of the job to continue after (null: the first), how many jobs to read
-- gives:   how many results went, and the place to continue after, null at the end
-- locks:   the jobs whose results go; whatever others hold stays for a later pass
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.result_drop_v1(p_after_at timestamptz, p_after_id bigint, p_limit integer)
RETURNS TABLE (results integer, next_at timestamptz, next_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t      timestamptz := detent.clock();
  looked bigint[];
  over   bigint[];
BEGIN
  SELECT c.ids, c.next_at, c.next_id INTO looked, next_at, next_id
    FROM detent.jobs_created_before(
      (SELECT t - make_interval(secs => min(s.result_ttl)) + interval '1 microsecond' FROM detent.task_times s),
      p_after_at, p_after_id, p_limit) c;
  over := ARRAY(
    SELECT j.id FROM detent.job j
     WHERE j.id = ANY (looked) AND j.state = 'succeeded' AND j.result IS NOT NULL
       AND j.finished_at <= (SELECT t - make_interval(secs => s.result_ttl) FROM detent.task_times s WHERE s.task = j.task)
       FOR UPDATE SKIP LOCKED);
  UPDATE detent.job j SET result = NULL, result_dropped_at = t WHERE j.id = ANY (over);
  results := cardinality(over);
  RETURN NEXT;
END $$;

-- key_expire: delete keys whose time to live is over.
-- takes:   how many at most
-- gives:   how many went
-- locks:   the keys that go; whatever others hold stays for a later pass
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.key_expire_v1(p_limit integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t    timestamptz := detent.clock();
  gone integer;
BEGIN
  DELETE FROM detent.job_key WHERE ctid = ANY (ARRAY(
    SELECT k.ctid FROM detent.job_key k WHERE k.expires_at IS NOT NULL AND k.expires_at <= t
     ORDER BY k.expires_at LIMIT p_limit FOR UPDATE SKIP LOCKED));
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN gone;
END $$;

-- key_forget: delete keys without a time to live whose job is gone.
-- takes:   tenant and key to continue after, how many keys to read
-- gives:   how many went, and tenant and key to continue after, null at the end
-- locks:   the keys that go
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.key_forget_v1(p_tenant text, p_key text, p_limit integer)
RETURNS TABLE (keys integer, next_tenant text, next_key text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  looked integer;
BEGIN
  WITH asked AS MATERIALIZED (
    SELECT k.tenant, k.key, k.job_id, k.expires_at, k.until_claim FROM detent.job_key k
     WHERE (k.tenant, k.key) > (p_tenant, p_key) ORDER BY k.tenant, k.key LIMIT p_limit
  ), gone AS (
    DELETE FROM detent.job_key k USING asked a
     WHERE k.tenant = a.tenant AND k.key = a.key AND k.job_id = a.job_id AND a.expires_at IS NULL AND NOT a.until_claim
       AND NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = a.job_id)
    RETURNING 1
  )
  SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM asked), last.tenant, last.key
    INTO keys, looked, next_tenant, next_key
    FROM (SELECT 1) one LEFT JOIN (SELECT a.tenant, a.key FROM asked a ORDER BY a.tenant DESC, a.key DESC LIMIT 1) last ON true;
  IF looked < p_limit THEN
    next_tenant := NULL;
    next_key := NULL;
  END IF;
  RETURN NEXT;
END $$;
