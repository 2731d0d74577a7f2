-- operation_start: start an action on all jobs that exist now and fit.
-- takes:   its id, what to do, the filter and the argument (read by the client only), who, why
-- gives:   the operation
-- locks:   its row
-- refuses: nothing: the same id again is the same operation
CREATE OR REPLACE FUNCTION detent.operation_start_v1(
  p_id bigint, p_action text, p_filter text, p_argument text, p_actor text, p_reason text DEFAULT NULL
) RETURNS SETOF detent.operation
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  INSERT INTO detent.operation (id, action, filter, argument, actor, reason, until_id, created_at)
    VALUES (p_id, p_action, p_filter, p_argument, p_actor, p_reason,
            coalesce((SELECT max(j.id) FROM detent.job j), 0), t)
    ON CONFLICT (id) DO NOTHING;
  IF FOUND THEN
    INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, metadata, at)
      VALUES ('operation', p_id::text, NULL, 'running', p_action, p_actor, p_reason, p_filter, t);
  END IF;
  RETURN QUERY SELECT o.* FROM detent.operation o WHERE o.id = p_id;
END $$;

-- operation_step: read the next jobs of an operation, and apply its action to those that fit.
-- takes:   the operation, how many jobs to read; what it was asked to do, from its own row (filters as job_list takes them)
-- gives:   the operation afterwards; nothing if there is none
-- locks:   its row, then the jobs as the verb does
-- refuses: job by job, as the verb does; what it refused is counted
CREATE OR REPLACE FUNCTION detent.operation_step_v2(
  p_id bigint, p_limit integer, p_state text, p_task text, p_queue text, p_tenant text, p_to_queue text,
  p_to_priority smallint, p_metadata text, p_key text, p_correlation_id text, p_run_id bigint, p_worker text, p_error text,
  p_names text[], p_values text[], p_since timestamptz, p_until timestamptz, p_undo boolean
) RETURNS SETOF detent.operation
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t      timestamptz := detent.clock();
  op     detent.operation;
  looked bigint[];
  ids    bigint[];
  yes    integer := 0;
  no     integer := 0;
  bounds record;
BEGIN
  SELECT o.* INTO op FROM detent.operation o WHERE o.id = p_id FOR UPDATE;
  IF op.state = 'running' THEN
    IF op.looked_at = 0 AND (p_key IS NOT NULL OR p_run_id IS NOT NULL OR p_correlation_id IS NOT NULL) THEN
      -- Only the range that has such jobs, found once, by the first step: it reads one index entry for each job of the run. The
      -- index is by time, and ids are not in the order of time, so the least id is not the first entry. The addition keeps the planner from reading all jobs for the least and greatest id.
      SELECT min(u.id + 0) AS low, max(u.id + 0) AS high INTO bounds
        FROM (SELECT k.job_id AS id FROM detent.job_key k WHERE k.tenant = coalesce(p_tenant, '') AND k.key = p_key
              UNION ALL
              SELECT j.id FROM detent.job j WHERE p_key IS NULL AND j.run_id = p_run_id
              UNION ALL
              SELECT j.id FROM detent.job j
               WHERE p_key IS NULL AND p_run_id IS NULL AND j.correlation_id = p_correlation_id) u;
      op.until_id := least(op.until_id, coalesce(bounds.high, 0));
      op.after_id := greatest(op.after_id, coalesce(bounds.low - 1, 0));
    END IF;
    looked := ARRAY(SELECT j.id FROM detent.job j WHERE j.id > op.after_id AND j.id <= op.until_id ORDER BY j.id LIMIT p_limit);
    ids := ARRAY(
      SELECT j.id FROM detent.job j
       WHERE j.id = ANY (looked)
         AND (p_state IS NULL OR j.state = p_state) AND (p_task IS NULL OR j.task = p_task)
         AND (p_queue IS NULL OR j.queue = p_queue) AND (p_tenant IS NULL OR j.tenant = p_tenant)
         AND (p_since IS NULL OR j.created_at >= p_since) AND (p_until IS NULL OR j.created_at < p_until)
         AND (p_key IS NULL OR EXISTS (
                SELECT 1 FROM detent.job_key k WHERE k.job_id = j.id AND k.key = p_key AND k.tenant = coalesce(p_tenant, '')))
         AND (p_correlation_id IS NULL OR j.correlation_id = p_correlation_id) AND (p_run_id IS NULL OR j.run_id = p_run_id)
         AND (p_worker IS NULL
              OR EXISTS (SELECT 1 FROM detent.execution e WHERE e.job_id = j.id AND e.worker = p_worker)
              OR EXISTS (SELECT 1 FROM detent.lease l WHERE l.id = j.lease_id AND j.state = 'running' AND l.worker = p_worker))
         AND (p_error IS NULL OR position(p_error IN coalesce(j.error, '')) > 0
              OR EXISTS (SELECT 1 FROM detent.execution e WHERE e.job_id = j.id AND position(p_error IN coalesce(e.error, '')) > 0))
         AND (p_names IS NULL OR detent.metadata_fits(j.metadata, p_names, p_values))
         AND NOT (op.action = 'cancel'
                  AND (j.state = 'cancelled' OR j.state IN ('pending', 'running') AND j.cancel_requested_at IS NOT NULL
                                                AND (p_undo OR j.cancel_undo IS FALSE))));
    IF op.action = 'retry' THEN
      -- A job that is there already is neither changed nor refused.
      SELECT count(*) FILTER (WHERE r.moved), count(*) FILTER (WHERE r.from_state IS NULL OR r.from_state <> 'pending' AND NOT r.moved)
        INTO yes, no FROM detent.job_retry_v2(ids, op.actor, op.reason, false) r;
    ELSIF op.action = 'discard' THEN
      SELECT count(*) FILTER (WHERE r.moved), count(*) FILTER (WHERE r.from_state IS NULL OR r.from_state <> 'cancelled' AND NOT r.moved)
        INTO yes, no FROM detent.job_discard_v2(ids, op.actor, op.reason) r;
    ELSIF op.action = 'cancel' THEN
      SELECT count(*) FILTER (WHERE r.state IS NOT NULL AND r.committed_attempt IS NULL AND NOT r.refused),
             count(*) FILTER (WHERE r.state IS NULL OR r.committed_attempt IS NOT NULL OR r.refused)
        INTO yes, no FROM detent.job_cancel_v1(ids, op.actor, op.reason, p_undo) r;
    ELSE
      SELECT count(*) FILTER (WHERE r.moved), count(*) FILTER (WHERE r.from_state IS DISTINCT FROM 'pending')
        INTO yes, no FROM detent.job_move_v1(ids, p_to_queue, p_to_priority, op.actor, op.reason, p_metadata) r;
    END IF;
    op.state := CASE WHEN cardinality(looked) < p_limit THEN 'done' ELSE 'running' END;
    UPDATE detent.operation o
       SET until_id = op.until_id, after_id = CASE WHEN op.state = 'done' THEN op.until_id ELSE looked[p_limit] END,
           looked_at = o.looked_at + cardinality(looked), changed = o.changed + yes, refused = o.refused + no,
           state = op.state, finished_at = CASE WHEN op.state = 'done' THEN t END
     WHERE o.id = p_id;
    IF op.state = 'done' THEN
      INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, at)
        VALUES ('operation', p_id::text, 'running', 'done', 'complete', 'system', t);
    END IF;
  END IF;
  RETURN QUERY SELECT o.* FROM detent.operation o WHERE o.id = p_id;
END $$;

-- operation_skip: skip the next job of an operation, and count it as refused.
-- takes:   the operation
-- gives:   the operation afterwards; nothing if there is none
-- locks:   its row
-- refuses: nothing; an operation that is not running, or has no job left, stays as it is
CREATE OR REPLACE FUNCTION detent.operation_skip_v1(p_id bigint) RETURNS SETOF detent.operation
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  UPDATE detent.operation o
     SET after_id = n.id, looked_at = o.looked_at + 1, refused = o.refused + 1
    FROM (SELECT j.id FROM detent.operation p JOIN LATERAL
            (SELECT k.id FROM detent.job k WHERE k.id > p.after_id AND k.id <= p.until_id ORDER BY k.id LIMIT 1) j ON true
           WHERE p.id = p_id AND p.state = 'running' FOR UPDATE OF p) n
   WHERE o.id = p_id;
  RETURN QUERY SELECT o.* FROM detent.operation o WHERE o.id = p_id;
END $$;

-- operation_cancel: stop an operation.
-- takes:   the operation, who, why
-- gives:   the state it was in, null if there is none
-- locks:   its row
-- refuses: nothing: one that has ended stays as it is
CREATE OR REPLACE FUNCTION detent.operation_cancel_v1(p_id bigint, p_actor text, p_reason text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t   timestamptz := detent.clock();
  was text;
BEGIN
  SELECT o.state INTO was FROM detent.operation o WHERE o.id = p_id FOR UPDATE;
  IF was = 'running' THEN
    UPDATE detent.operation SET state = 'cancelled', finished_at = t WHERE id = p_id;
    INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
      VALUES ('operation', p_id::text, 'running', 'cancelled', 'cancel', p_actor, p_reason, t);
  END IF;
  RETURN was;
END $$;

-- operation_get: return an operation.
-- takes:   its id
-- gives:   its row, or nothing
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.operation_get_v1(p_id bigint) RETURNS SETOF detent.operation
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT o.* FROM detent.operation o WHERE o.id = p_id;
END $$;

-- operation_list: operations, the newest first.
-- takes:   the state (null is any), how many, below which id (null: from the newest)
-- gives:   operations
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.operation_list_v2(p_state text, p_limit integer, p_before_id bigint) RETURNS SETOF detent.operation
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET enable_sort = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  below bigint := coalesce(p_before_id, 9223372036854775807);
BEGIN
  IF p_state IS NULL THEN
    RETURN QUERY SELECT o.* FROM detent.operation o WHERE o.id < below ORDER BY o.id DESC LIMIT p_limit;
  ELSE
    -- A range of the index by state: with an equality, the planner may walk along all operations by id instead.
    RETURN QUERY
      SELECT o.* FROM detent.operation o WHERE (o.state, o.id) >= (p_state, 0) AND (o.state, o.id) < (p_state, below)
       ORDER BY o.state DESC, o.id DESC LIMIT p_limit;
  END IF;
END $$;
