-- batch_act: begin an action. The caller has locked and judged the run, and enqueues the action's job in the same transaction.
-- takes:   the action, the numbers of the targets that were named (null: all), and whether it may overwrite changes of others
-- gives:   nothing
-- locks:   the run
-- refuses: nothing: the guards do
CREATE OR REPLACE FUNCTION detent.batch_act_v2(
  p_id bigint, p_run_id bigint, p_action text, p_actor text, p_reason text, p_metadata text, p_unchanged boolean,
  p_job_id bigint, p_ns integer[], p_overwrite boolean
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  b  detent.batch_run;
  t  timestamptz;
  to_state text;
BEGIN
  SELECT r.* INTO STRICT b FROM detent.batch_run r WHERE r.id = p_run_id FOR UPDATE;
  t := greatest(detent.clock(), b.moved_at);
  INSERT INTO detent.batch_action (id, run_id, action, actor, reason, metadata, chosen, unchanged, job_id, created_at)
    VALUES (p_id, p_run_id, p_action, p_actor, p_reason, p_metadata, cardinality(p_ns), p_unchanged, p_job_id, t);
  INSERT INTO detent.batch_choice (action_id, n) SELECT p_id, u.n FROM unnest(p_ns) AS u (n);
  to_state := CASE p_action WHEN 'apply' THEN 'queued' WHEN 'retry_failed' THEN 'applying'
                            ELSE CASE WHEN b.state IN ('failed', 'cancelled') THEN 'partial' ELSE b.state END END;
  INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, metadata, correlation_id, at)
    VALUES (b.tenant, 'batch_run', b.id::text, b.state, to_state,
            CASE p_action WHEN 'apply' THEN CASE b.state WHEN 'preview' THEN 'queue' ELSE 'queue_rest' END
                          WHEN 'retry_failed' THEN 'retry_failed' ELSE 'request_roll_back' END,
            p_actor, p_reason, p_metadata, b.correlation_id, t);
  IF p_action = 'roll_back' THEN
    UPDATE detent.mismatch m SET resolved_at = t WHERE m.run_id = p_run_id AND m.resolved_at IS NULL;
    UPDATE detent.batch_run r
       SET state = to_state, outstanding = 1, rollback_requested_at = coalesce(r.rollback_requested_at, t), rollback_requested_by = p_actor,
           rollback_reason = p_reason, reconcile_at = NULL, mismatches = 0, critical = NULL, overwrite = p_overwrite,
           cancel_requested_at = NULL, cancel_requested_by = NULL, cancel_reason = NULL, stuck = 0, error = NULL, started_at = coalesce(r.started_at, r.queued_at), moved_at = t
     WHERE r.id = p_run_id;
  ELSE
    UPDATE detent.batch_run r
       SET state = to_state, outstanding = 1, queued_at = CASE p_action WHEN 'apply' THEN t ELSE r.queued_at END,
           started_at = CASE p_action WHEN 'apply' THEN NULL ELSE coalesce(r.started_at, r.queued_at) END, finished_at = NULL, reconcile_at = NULL,
           critical = NULL, overwrite = p_overwrite, cancel_requested_at = NULL, cancel_requested_by = NULL, cancel_reason = NULL,
           stuck = 0, error = NULL, moved_at = t
     WHERE r.id = p_run_id;
  END IF;
END $$;

-- batch_action: an action, locked until the caller's transaction ends.
-- takes:   the action
-- gives:   its row
-- locks:   the action
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_action_v1(p_action_id bigint) RETURNS SETOF detent.batch_action
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY SELECT a.* FROM detent.batch_action a WHERE a.id = p_action_id FOR UPDATE;
END $$;

-- batch_portion: the targets that an action has to move, in order.
-- takes:   the action, after which number, up to which (null: to the end), how many at most (null: all)
-- gives:   the targets, and how often each was tried
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_portion_v1(p_action_id bigint, p_after integer, p_until integer, p_limit integer)
RETURNS TABLE (target detent.target, attempts integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET enable_sort = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
-- No sort: a planner with statistics of an empty table would sort the whole run for each portion.
DECLARE
  a detent.batch_action;
BEGIN
  SELECT c.* INTO a FROM detent.batch_action c WHERE c.id = p_action_id;
  IF a.chosen IS NOT NULL THEN
    RETURN QUERY
      SELECT g, coalesce((SELECT j.attempt FROM detent.job j WHERE j.id = g.apply_job_id), 0)
        FROM detent.batch_choice c JOIN detent.target g ON g.run_id = a.run_id AND g.n = c.n
       WHERE c.action_id = p_action_id AND c.n > p_after AND c.n <= coalesce(p_until, 2147483647)
         AND g.state = CASE a.action WHEN 'apply' THEN 'preview' ELSE 'failed' END
       ORDER BY c.n LIMIT p_limit;
  ELSE
    RETURN QUERY
      SELECT g, coalesce((SELECT j.attempt FROM detent.job j WHERE j.id = g.apply_job_id), 0)
        FROM detent.target g
       WHERE g.run_id = a.run_id AND g.n > p_after AND g.n <= coalesce(p_until, 2147483647)
         AND CASE a.action WHEN 'apply' THEN g.state = 'preview' AND g.changed IS NOT NULL AND (g.changed OR a.unchanged)
                           WHEN 'retry_failed' THEN g.state = 'failed'
                           ELSE g.state = 'applied' AND (g.revert_job_id IS NULL OR g.revert_state = 'failed') END
       ORDER BY g.n LIMIT p_limit;
  END IF;
END $$;

-- batch_chosen: what an action has to move in one step.
-- takes:   the action, after which number, up to which
-- gives:   the numbers of the targets that need a job of their own, and the jobs that are to be retried
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_chosen_v1(p_action_id bigint, p_after integer, p_until integer)
RETURNS TABLE (need integer[], again bigint[])
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  doing text := (SELECT a.action FROM detent.batch_action a WHERE a.id = p_action_id);
BEGIN
  SELECT array_agg((p.target).n ORDER BY (p.target).n) FILTER (
           WHERE doing = 'apply' OR doing = 'roll_back' AND (p.target).revert_job_id IS NULL),
         array_agg(CASE doing WHEN 'retry_failed' THEN (p.target).apply_job_id ELSE (p.target).revert_job_id END) FILTER (
           WHERE doing = 'retry_failed' OR doing = 'roll_back' AND (p.target).revert_job_id IS NOT NULL)
    INTO need, again
    FROM detent.batch_portion_v1(p_action_id, p_after, p_until, NULL) p;
  RETURN NEXT;
END $$;

-- batch_step: move the cursor of an action. The caller has locked it and has moved the targets in this transaction.
-- takes:   the action, from where to where, how many targets were moved, whether that is all
-- gives:   whether the cursor was there
-- locks:   the action; at its end the run
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_step_v1(p_action_id bigint, p_from integer, p_to integer, p_moved integer, p_last boolean)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t   timestamptz := detent.clock();
  run bigint;
BEGIN
  UPDATE detent.batch_action a
     SET cursor = p_to, moved = a.moved + p_moved, done_at = CASE WHEN p_last THEN greatest(t, a.created_at) END
   WHERE a.id = p_action_id AND a.cursor = p_from AND a.done_at IS NULL
  RETURNING a.run_id INTO run;
  IF run IS NULL THEN
    RETURN false;
  END IF;
  UPDATE detent.batch_run b SET outstanding = 0, moved_at = greatest(t, b.moved_at) WHERE p_last AND b.id = run;
  RETURN true;
END $$;

-- batch_cancel: cancel a run. The caller has locked it and its open action, and has found that it can be cancelled.
-- takes:   the run, who, why
-- gives:   nothing
-- locks:   the run
-- refuses: nothing: the guards do
CREATE OR REPLACE FUNCTION detent.batch_cancel_v1(p_run_id bigint, p_actor text, p_reason text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  b        detent.batch_run;
  t        timestamptz;
  to_state text;
BEGIN
  SELECT r.* INTO STRICT b FROM detent.batch_run r WHERE r.id = p_run_id FOR UPDATE;
  t := greatest(detent.clock(), b.moved_at);
  to_state := CASE WHEN b.queued + b.applying = 0 THEN 'cancelled' ELSE b.state END;
  INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, correlation_id, at)
    VALUES (b.tenant, 'batch_run', b.id::text, b.state, to_state, CASE to_state WHEN 'cancelled' THEN 'cancel' ELSE 'request_cancel' END,
            p_actor, p_reason, b.correlation_id, t);
  UPDATE detent.batch_action a SET done_at = greatest(t, a.created_at) WHERE a.run_id = p_run_id AND a.done_at IS NULL;
  UPDATE detent.batch_run r
     SET state = to_state, outstanding = 0, critical = coalesce(r.critical, 'cancelled by ' || p_actor || coalesce(': ' || p_reason, '')),
         cancel_requested_at = t, cancel_requested_by = p_actor, cancel_reason = p_reason, moved_at = t,
         finished_at = CASE to_state WHEN 'cancelled' THEN t END
   WHERE r.id = p_run_id;
  IF to_state = 'cancelled' THEN
    PERFORM detent.alert_resolve_v1(p.name, 'run:' || b.id, 'Run ' || b.id || ' of ' || b.batch || ' is cancelled')
       FROM unnest('{run_failed,run_partial}'::text[]) AS p (name);
  END IF;
END $$;
