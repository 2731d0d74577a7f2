-- batch_create: insert a run in state preview, unless the id is taken. The caller enqueues its plan's job in the same transaction.
-- takes:   the run
-- gives:   whether it is new
-- locks:   the new row
-- refuses: nothing: the caller compares a run that has the id
CREATE OR REPLACE FUNCTION detent.batch_create_v1(
  p_id bigint, p_tenant text, p_batch text, p_payload text, p_fingerprint text, p_actor text, p_reason text,
  p_correlation_id text, p_metadata text, p_tolerate_count integer, p_tolerate_share double precision
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  INSERT INTO detent.batch_run (id, tenant, batch, payload, fingerprint, actor, reason, correlation_id, metadata,
      tolerate_count, tolerate_share, created_at, moved_at)
    VALUES (p_id, p_tenant, p_batch, p_payload, p_fingerprint, p_actor, p_reason, p_correlation_id, p_metadata,
            p_tolerate_count, p_tolerate_share, t, t)
    ON CONFLICT (id) DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, metadata, correlation_id, at)
    VALUES (p_tenant, 'batch_run', p_id::text, NULL, 'preview', 'create', p_actor, p_reason, p_metadata, p_correlation_id, t);
  RETURN true;
END $$;

-- batch_get: a run.
-- takes:   its id
-- gives:   its row
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_get_v1(p_run_id bigint) RETURNS SETOF detent.batch_run
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY SELECT b.* FROM detent.batch_run b WHERE b.id = p_run_id;
END $$;

-- batch_lock: a run, locked until the caller's transaction ends.
-- takes:   the run
-- gives:   its row
-- locks:   the run
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_lock_v1(p_run_id bigint) RETURNS SETOF detent.batch_run
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY SELECT b.* FROM detent.batch_run b WHERE b.id = p_run_id FOR UPDATE;
END $$;

-- batch_hold: a run and its open action, locked until the caller's transaction ends.
-- takes:   the run
-- gives:   its row
-- locks:   the open action, then the run
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_hold_v1(p_run_id bigint) RETURNS SETOF detent.batch_run
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  PERFORM 1 FROM detent.batch_action a WHERE a.run_id = p_run_id AND a.done_at IS NULL FOR UPDATE;
  RETURN QUERY SELECT b.* FROM detent.batch_run b WHERE b.id = p_run_id FOR UPDATE;
END $$;

-- batch_list: runs, newest first.
-- takes:   state, batch and tenant (null is any), below which id (null: from the newest), how many
-- gives:   runs
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_list_v1(p_state text, p_batch text, p_tenant text, p_before_id bigint, p_limit integer)
RETURNS SETOF detent.batch_run
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
    SELECT b.* FROM detent.batch_run b
     WHERE b.id < coalesce(p_before_id, 9223372036854775807) AND (p_state IS NULL OR b.state = p_state)
       AND (p_batch IS NULL OR b.batch = p_batch) AND (p_tenant IS NULL OR b.tenant = p_tenant)
     ORDER BY b.id DESC LIMIT p_limit;
END $$;

-- batch_holds: whether the caller holds a job of a run.
-- takes:   the job, its attempt, the run
-- gives:   why not; null if it does
-- locks:   the job, so that no other worker can take it until the transaction ends
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_holds_v1(p_job_id bigint, p_attempt integer, p_run_id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  j detent.job;
BEGIN
  SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id FOR SHARE;
  RETURN coalesce(detent.holder_lost(j, p_attempt, detent.clock()),
                  CASE WHEN j.run_id IS DISTINCT FROM p_run_id THEN 'it is no job of run ' || p_run_id END);
END $$;

-- batch_stop: stop a run after a critical error. The caller holds a job of it and enqueues the driver in the same transaction.
-- takes:   the run, why
-- gives:   false if it was stopped before
-- locks:   the open action, then the run
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_stop_v1(p_run_id bigint, p_reason text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := detent.clock();
  b detent.batch_run;
BEGIN
  PERFORM 1 FROM detent.batch_action a WHERE a.run_id = p_run_id AND a.done_at IS NULL FOR UPDATE;
  SELECT r.* INTO b FROM detent.batch_run r WHERE r.id = p_run_id FOR UPDATE;
  IF b.critical IS NOT NULL THEN
    RETURN false;
  END IF;
  UPDATE detent.batch_action a SET done_at = greatest(t, a.created_at) WHERE a.run_id = p_run_id AND a.done_at IS NULL;
  UPDATE detent.batch_run r SET critical = p_reason, outstanding = 0, moved_at = greatest(t, r.moved_at) WHERE r.id = p_run_id;
  RETURN true;
END $$;

-- batch_prune: delete old runs with their targets. job_prune deletes their jobs later.
-- takes:   the horizon, the id to go on after, how many runs to read, who
-- gives:   how many runs were deleted, and the id to go on after, null at the end
-- locks:   the deleted runs; runs that others have locked are left for a later call
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_prune_v1(p_before timestamptz, p_after_id bigint, p_limit integer, p_actor text)
RETURNS TABLE (runs integer, next_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t      timestamptz := detent.clock();
  looked bigint[];
  old    bigint[];
BEGIN
  INSERT INTO detent.horizon (before, actor, at)
    SELECT p_before, p_actor, t WHERE NOT EXISTS (SELECT 1 FROM detent.horizon h WHERE h.before >= p_before);
  looked := ARRAY(SELECT b.id FROM detent.batch_run b WHERE b.id > p_after_id ORDER BY b.id LIMIT p_limit);
  old := ARRAY(
    SELECT b.id FROM detent.batch_run b
     WHERE b.id = ANY (looked) AND b.moved_at < p_before AND b.outstanding = 0 AND b.queued + b.applying + b.reverting = 0
       AND b.reconcile_at IS NULL AND b.state IN ('preview', 'applied', 'partial', 'failed', 'cancelled', 'rolled_back')
       FOR UPDATE SKIP LOCKED);
  DELETE FROM detent.batch_run b WHERE b.id = ANY (old);
  DELETE FROM detent.target g WHERE g.run_id = ANY (old);
  DELETE FROM detent.batch_choice c USING detent.batch_action a WHERE a.run_id = ANY (old) AND c.action_id = a.id;
  DELETE FROM detent.batch_action a WHERE a.run_id = ANY (old);
  DELETE FROM detent.reconciliation r WHERE r.run_id = ANY (old);
  DELETE FROM detent.mismatch m WHERE m.run_id = ANY (old);
  runs := cardinality(old);
  next_id := CASE WHEN cardinality(looked) = p_limit THEN looked[p_limit] END;
  RETURN NEXT;
END $$;
