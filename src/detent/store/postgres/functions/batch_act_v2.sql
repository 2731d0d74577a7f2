-- batch_act: begin an action. The caller has the run's lock and has judged it; the action's job is enqueued by the caller in
-- the same transaction.
-- takes:   the action, the numbers of the targets that were named (null: all that it is for), and whether it may overwrite what
--          others have changed
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
                            ELSE CASE b.state WHEN 'failed' THEN 'partial' ELSE b.state END END;
  INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, metadata, correlation_id, at)
    VALUES (b.tenant, 'batch_run', b.id::text, b.state, to_state,
            CASE p_action WHEN 'apply' THEN CASE b.state WHEN 'preview' THEN 'queue' ELSE 'queue_rest' END
                          WHEN 'retry_failed' THEN 'retry_failed' ELSE 'request_roll_back' END,
            p_actor, p_reason, p_metadata, b.correlation_id, t);
  IF p_action = 'roll_back' THEN
    UPDATE detent.mismatch m SET resolved_at = t WHERE m.run_id = p_run_id AND m.resolved_at IS NULL;
    UPDATE detent.batch_run r
       SET state = to_state, outstanding = 1, rollback_requested_at = coalesce(r.rollback_requested_at, t), rollback_requested_by = p_actor,
           rollback_reason = p_reason, reconcile_at = NULL, mismatches = 0, critical = NULL, overwrite = p_overwrite, moved_at = t
     WHERE r.id = p_run_id;
  ELSE
    UPDATE detent.batch_run r
       SET state = to_state, outstanding = 1, queued_at = CASE p_action WHEN 'apply' THEN t ELSE r.queued_at END,
           started_at = CASE p_action WHEN 'apply' THEN NULL ELSE r.started_at END, finished_at = NULL, reconcile_at = NULL,
           critical = NULL, overwrite = p_overwrite, moved_at = t
     WHERE r.id = p_run_id;
  END IF;
END $$;
