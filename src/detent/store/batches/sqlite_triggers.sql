-- A target follows its job, and the batch run follows its targets.
-- One statement that moves 500 jobs makes one update of the run, not 500. Locks are taken in the order job, target, run.

-- The remaining jobs belong to the run itself: its plan, its preview, its actions. A failed reconciliation blocks nothing.
CREATE TRIGGER detent_job_moves_run AFTER UPDATE OF state ON detent_job
  FOR EACH ROW WHEN NEW.run_id IS NOT NULL AND (NEW.state IN ('failed', 'quarantined', 'cancelled')) <> (OLD.state IN ('failed', 'quarantined', 'cancelled'))
BEGIN
  UPDATE detent_batch_run
     SET stuck = max(0, stuck + CASE WHEN NEW.state IN ('failed', 'quarantined', 'cancelled') THEN 1 ELSE -1 END),
         error = CASE WHEN NEW.state = 'cancelled' THEN coalesce(NEW.error, 'job ' || NEW.id || ' (' || NEW.task || ') was cancelled')
                      WHEN NEW.state IN ('failed', 'quarantined') THEN coalesce(NEW.error, error) WHEN stuck > 1 THEN error END
   WHERE id = NEW.run_id
     AND NOT EXISTS (SELECT 1 FROM detent_target WHERE apply_job_id = NEW.id)
     AND NOT EXISTS (SELECT 1 FROM detent_target WHERE revert_job_id = NEW.id)
     AND NOT EXISTS (SELECT 1 FROM detent_reconciliation WHERE run_id = NEW.run_id AND job_id = NEW.id);
END;

-- The counts of a run are those of its targets.
CREATE TRIGGER detent_target_counts_new AFTER INSERT ON detent_target
BEGIN
  UPDATE detent_batch_run SET total = total + 1, moved_at = max(moved_at, NEW.moved_at) WHERE id = NEW.run_id;
END;

CREATE TRIGGER detent_target_counts_previewed AFTER UPDATE OF previewed_at ON detent_target
  FOR EACH ROW WHEN NEW.previewed_at IS NOT NULL AND OLD.previewed_at IS NULL
BEGIN
  UPDATE detent_batch_run
     SET previewed = previewed + (NEW.changed IS NOT NULL), preview_failed = preview_failed + (NEW.preview_error IS NOT NULL),
         unchanged = unchanged + (NEW.changed IS 0), moved_at = max(moved_at, NEW.moved_at)
   WHERE id = NEW.run_id;
END;

-- A job returns to pending at the end of its attempt, which is recorded before the job moves, or at the retry.
CREATE TRIGGER detent_job_moves_target AFTER UPDATE OF state ON detent_job
  FOR EACH ROW WHEN NEW.run_id IS NOT NULL AND NEW.state <> OLD.state
BEGIN
  UPDATE detent_target
     SET state = CASE NEW.state WHEN 'pending' THEN 'queued' WHEN 'running' THEN 'applying' WHEN 'succeeded' THEN 'applied' ELSE 'failed' END,
         applied_at = CASE WHEN NEW.state = 'succeeded' THEN max(NEW.finished_at, moved_at) END,
         error = CASE WHEN NEW.state = 'pending' THEN error WHEN NEW.state = 'running' OR NEW.state = 'succeeded' THEN NULL
                      ELSE coalesce(NEW.error, (SELECT 'Not begun: ' || b.critical FROM detent_batch_run b WHERE b.id = run_id)) END,
         conflict = CASE WHEN NEW.state = 'running' OR NEW.state = 'succeeded' THEN NULL ELSE conflict END,
         moved_at = max(moved_at, CASE NEW.state WHEN 'running' THEN NEW.leased_at WHEN 'pending' THEN
           coalesce((SELECT e.aborted_at FROM detent_execution e WHERE OLD.state = 'running' AND e.job_id = NEW.id AND e.attempt = NEW.attempt), NEW.due_at)
           ELSE NEW.finished_at END)
   WHERE apply_job_id = NEW.id AND state <> CASE NEW.state WHEN 'pending' THEN 'queued' WHEN 'running' THEN 'applying' WHEN 'succeeded' THEN 'applied' ELSE 'failed' END;
  UPDATE detent_target
     SET state = CASE WHEN NEW.state = 'succeeded' THEN 'rolled_back' ELSE state END, revert_state = CASE NEW.state WHEN 'succeeded' THEN 'done' WHEN 'pending' THEN 'reverting' WHEN 'running' THEN 'reverting' ELSE 'failed' END,
         rolled_back_at = CASE WHEN NEW.state = 'succeeded' THEN max(NEW.finished_at, moved_at) END,
         error = CASE WHEN NEW.state IN ('pending', 'running', 'succeeded') THEN NULL
                      ELSE coalesce(NEW.error, (SELECT 'Not begun: ' || b.critical FROM detent_batch_run b WHERE b.id = run_id)) END,
         conflict = CASE WHEN NEW.state IN ('pending', 'running', 'succeeded') THEN NULL ELSE conflict END,
         moved_at = max(moved_at, coalesce(NEW.finished_at, NEW.leased_at, NEW.created_at))
   WHERE revert_job_id = NEW.id AND revert_state <> CASE NEW.state WHEN 'succeeded' THEN 'done' WHEN 'pending' THEN 'reverting' WHEN 'running' THEN 'reverting' ELSE 'failed' END;
END;

CREATE TRIGGER detent_target_counts AFTER UPDATE OF state, revert_state, conflict ON detent_target
  FOR EACH ROW WHEN NEW.state <> OLD.state OR NEW.revert_state IS NOT OLD.revert_state OR NEW.conflict IS NOT OLD.conflict
BEGIN
  UPDATE detent_batch_run
     SET queued = queued + (NEW.state = 'queued') - (OLD.state = 'queued'),
         applying = applying + (NEW.state = 'applying') - (OLD.state = 'applying'),
         applied = applied + (NEW.state = 'applied') - (OLD.state = 'applied'),
         failed = failed + (NEW.state = 'failed') - (OLD.state = 'failed'),
         rolled_back = rolled_back + (NEW.state = 'rolled_back') - (OLD.state = 'rolled_back'),
         reverting = reverting + (NEW.revert_state IS 'reverting') - (OLD.revert_state IS 'reverting'),
         revert_failed = revert_failed + (NEW.revert_state IS 'failed') - (OLD.revert_state IS 'failed'),
         conflicts = conflicts + (NEW.conflict IS NOT NULL) - (OLD.conflict IS NOT NULL),
         moved_at = max(moved_at, NEW.moved_at)
   WHERE id = NEW.run_id;
END;

-- The state of a run follows from its counts. Each step is recorded before it is taken.
CREATE TRIGGER detent_batch_run_settle AFTER UPDATE OF queued, applying, applied, failed, outstanding, reverting, revert_failed ON detent_batch_run
  FOR EACH ROW WHEN
    (NEW.state = 'queued' AND (NEW.applying > 0 OR NEW.applied + NEW.failed > OLD.applied + OLD.failed OR NEW.queued + NEW.outstanding = 0))
    OR (NEW.state = 'applying' AND NEW.queued + NEW.applying + NEW.outstanding = 0)
    OR (NEW.state IN ('partial', 'failed') AND NEW.rollback_requested_at IS NULL
        AND (NEW.queued + NEW.applying + NEW.outstanding > 0 OR NEW.failed = 0
             OR (NEW.critical IS NULL AND (NEW.state = 'partial') <> (NEW.applied + NEW.rolled_back > 0))))
    OR (NEW.state = 'cancelled' AND NEW.queued + NEW.applying + NEW.outstanding > 0)
    OR (NEW.rollback_requested_at IS NOT NULL AND NEW.state IN ('applied', 'partial')
        AND NEW.applied + NEW.outstanding + NEW.reverting + NEW.revert_failed = 0)
BEGIN
  INSERT INTO detent_transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, correlation_id, at)
    SELECT NEW.tenant, 'batch_run', CAST(NEW.id AS TEXT), NEW.state, 'applying', CASE NEW.state WHEN 'queued' THEN 'begin' ELSE 'retry_failed' END,
           'system', NEW.correlation_id, NEW.moved_at
     WHERE NEW.state IN ('queued', 'partial', 'failed', 'cancelled') AND NEW.rollback_requested_at IS NULL;
  UPDATE detent_batch_run
     SET state = 'applying', started_at = coalesce(started_at, moved_at), finished_at = NULL, reconcile_at = NULL,
         critical = CASE WHEN state = 'queued' THEN critical END,
         cancel_requested_at = CASE WHEN state = 'queued' THEN cancel_requested_at END,
         cancel_requested_by = CASE WHEN state = 'queued' THEN cancel_requested_by END,
         cancel_reason = CASE WHEN state = 'queued' THEN cancel_reason END
   WHERE id = NEW.id AND state IN ('queued', 'partial', 'failed', 'cancelled') AND rollback_requested_at IS NULL;
  INSERT INTO detent_transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, correlation_id, at)
    SELECT NEW.tenant, 'batch_run', CAST(NEW.id AS TEXT), 'applying',
           CASE WHEN cancel_requested_at IS NOT NULL THEN 'cancelled' WHEN failed = 0 THEN 'applied' WHEN critical IS NULL AND applied + rolled_back > 0 THEN 'partial' ELSE 'failed' END,
           CASE WHEN cancel_requested_at IS NOT NULL THEN 'cancel' WHEN failed = 0 THEN 'complete'
                WHEN critical IS NULL AND applied + rolled_back > 0 THEN 'complete_in_part' ELSE 'fail' END,
           coalesce(cancel_requested_by, 'system'), CASE WHEN cancel_requested_at IS NOT NULL THEN cancel_reason WHEN failed > 0 THEN critical END, NEW.correlation_id, NEW.moved_at
      FROM detent_batch_run WHERE id = NEW.id AND state = 'applying' AND queued + applying + outstanding = 0;
  INSERT INTO detent_alert_event (policy, scope, severity, message, facts, value, at)
    SELECT CASE WHEN critical IS NULL AND applied + rolled_back > 0 THEN 'run_partial' ELSE 'run_failed' END, 'run:' || id,
           CASE WHEN critical IS NULL AND applied + rolled_back > 0 THEN 'warning' ELSE 'critical' END,
           'Run ' || id || ' of ' || batch || ' is ' || CASE WHEN critical IS NULL AND applied + rolled_back > 0 THEN 'partial' ELSE 'failed' END || ': '
             || failed || ' of ' || (failed + applied) || ' targets failed' || coalesce('. It was stopped by a critical error: ' || critical, ''),
           '{"run_id":"' || id || '","batch":' || json_quote(batch) || ',"tenant":' || json_quote(tenant) || ',"applied":' || applied
             || ',"failed":' || failed || ',"mismatches":' || mismatches || '}',
           failed, moved_at
      FROM detent_batch_run
     WHERE id = NEW.id AND state = 'applying' AND queued + applying + outstanding = 0 AND failed > 0 AND cancel_requested_at IS NULL
       AND (failed > coalesce(tolerate_count, coalesce(tolerate_share, 0) * (applied + failed)) OR critical IS NOT NULL);
  INSERT INTO detent_alert_event (policy, scope, message, at)
    SELECT p.policy, 'run:' || id,
           'Run ' || id || ' of ' || batch || ' is '
             || CASE WHEN cancel_requested_at IS NOT NULL THEN 'cancelled' WHEN failed = 0 THEN 'applied' WHEN critical IS NULL AND applied + rolled_back > 0 THEN 'partial' ELSE 'failed' END, moved_at
      FROM (SELECT value AS policy FROM json_each('["run_failed","run_partial"]')) p CROSS JOIN detent_batch_run
     WHERE id = NEW.id AND state = 'applying' AND queued + applying + outstanding = 0
       AND (cancel_requested_at IS NOT NULL OR failed <= coalesce(tolerate_count, coalesce(tolerate_share, 0) * (applied + failed)) AND (critical IS NULL OR failed = 0)
            OR p.policy <> CASE WHEN critical IS NULL AND applied + rolled_back > 0 THEN 'run_partial' ELSE 'run_failed' END);
  UPDATE detent_batch_run
     SET state = CASE WHEN cancel_requested_at IS NOT NULL THEN 'cancelled' WHEN failed = 0 THEN 'applied' WHEN critical IS NULL AND applied + rolled_back > 0 THEN 'partial' ELSE 'failed' END,
         finished_at = moved_at, reconcile_no = 0,
         reconcile_at = CASE WHEN cancel_requested_at IS NULL AND (failed = 0 OR (critical IS NULL AND applied + rolled_back > 0)) THEN moved_at + 300000000 END
   WHERE id = NEW.id AND state = 'applying' AND queued + applying + outstanding = 0;
  INSERT INTO detent_transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, correlation_id, at)
    SELECT NEW.tenant, 'batch_run', CAST(NEW.id AS TEXT), NEW.state, 'rolled_back', 'roll_back', NEW.rollback_requested_by, NEW.rollback_reason,
           NEW.correlation_id, NEW.moved_at
     WHERE NEW.rollback_requested_at IS NOT NULL AND NEW.state IN ('applied', 'partial')
       AND NEW.applied + NEW.outstanding + NEW.reverting + NEW.revert_failed = 0;
  INSERT INTO detent_alert_event (policy, scope, message, at)
    SELECT p.policy, 'run:' || NEW.id, 'Run ' || NEW.id || ' of ' || NEW.batch || ' is rolled_back', NEW.moved_at
      FROM (SELECT value AS policy FROM json_each('["run_failed","run_partial"]')) p
     WHERE NEW.rollback_requested_at IS NOT NULL AND NEW.state IN ('applied', 'partial')
       AND NEW.applied + NEW.outstanding + NEW.reverting + NEW.revert_failed = 0;
  UPDATE detent_batch_run SET state = 'rolled_back', rolled_back_at = moved_at
   WHERE id = NEW.id AND rollback_requested_at IS NOT NULL AND state IN ('applied', 'partial')
     AND applied + outstanding + reverting + revert_failed = 0;
END;

-- Targets that no longer match what was applied: an alert while there are any.
CREATE TRIGGER detent_batch_run_mismatches AFTER UPDATE OF mismatches, reconciled_at ON detent_batch_run
  FOR EACH ROW WHEN NEW.mismatches > OLD.mismatches OR (NEW.mismatches = 0 AND OLD.mismatches > 0)
                    OR (NEW.mismatches > 0 AND NEW.reconciled_at IS NOT OLD.reconciled_at)
BEGIN
  INSERT INTO detent_alert_event (policy, scope, severity, message, facts, value, at)
    SELECT 'mismatches_found', 'run:' || NEW.id, 'warning',
           'Run ' || NEW.id || ' of ' || NEW.batch || ': ' || NEW.mismatches || ' of ' || NEW.applied || ' targets no longer match what was applied',
           '{"run_id":"' || NEW.id || '","batch":' || json_quote(NEW.batch) || ',"tenant":' || json_quote(NEW.tenant) || ',"applied":' || NEW.applied
             || ',"failed":' || NEW.failed || ',"mismatches":' || NEW.mismatches || '}',
           NEW.mismatches, max(NEW.moved_at, coalesce(NEW.reconciled_at, NEW.moved_at))
     WHERE NEW.mismatches > 0;
  INSERT INTO detent_alert_event (policy, scope, message, at)
    SELECT 'mismatches_found', 'run:' || NEW.id,
           'Run ' || NEW.id || ' of ' || NEW.batch || CASE WHEN NEW.rollback_requested_at IS NULL THEN ': every target matches what was applied again'
                                                           ELSE ' is rolled back' END, max(NEW.moved_at, coalesce(NEW.reconciled_at, NEW.moved_at))
     WHERE NEW.mismatches = 0;
END;
