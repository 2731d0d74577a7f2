-- L2, E1, G4, R3: every guard is there, letter for letter; one that was dropped or changed is found.
-- Generated from the migrations by `python -m detent.store.invariants.generate`; a test keeps it equal.
-- differs: SQLite keeps the text of its schema, so the text is compared.
WITH wanted (type, name, text) AS (VALUES
    ('trigger', 'detent_alert_event_raises', 'CREATE TRIGGER detent_alert_event_raises INSTEAD OF INSERT ON detent_alert_event
  FOR EACH ROW WHEN NEW.severity IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM detent_alert_policy p WHERE p.name = NEW.policy AND NOT p.enabled)
BEGIN
  UPDATE detent_alert
     SET severity = coalesce((SELECT p.severity FROM detent_alert_policy p WHERE p.name = NEW.policy), NEW.severity),
         message = substr(NEW.message, 1, 2000), facts = NEW.facts, value = NEW.value, raised = raised + 1, last_at = max(last_at, NEW.at)
   WHERE policy = NEW.policy AND scope = NEW.scope AND state = ''firing'';
  INSERT INTO detent_transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, metadata, at)
    SELECT ''alert'', NEW.policy || CASE NEW.scope WHEN '''' THEN '''' ELSE ''/'' || NEW.scope END, a.state, ''firing'', ''raise'', ''system'',
           substr(NEW.message, 1, 2000), NEW.facts, max(NEW.at, coalesce(a.last_at, NEW.at))
      FROM (SELECT 1) LEFT JOIN detent_alert a ON a.policy = NEW.policy AND a.scope = NEW.scope
     WHERE a.state IS NOT ''firing'';
  INSERT INTO detent_alert (policy, scope, severity, state, message, facts, value, since, last_at, told_at)
    VALUES (NEW.policy, NEW.scope, coalesce((SELECT p.severity FROM detent_alert_policy p WHERE p.name = NEW.policy), NEW.severity),
            ''firing'', substr(NEW.message, 1, 2000), NEW.facts, NEW.value, NEW.at, NEW.at, NEW.at)
    ON CONFLICT (policy, scope) DO UPDATE
      SET severity = excluded.severity, state = ''firing'', episode = episode + 1, message = excluded.message, facts = excluded.facts,
          value = excluded.value, raised = 1, since = max(excluded.since, last_at), last_at = max(excluded.last_at, last_at),
          told_at = max(excluded.told_at, last_at), resolved_at = NULL, acknowledged_at = NULL, acknowledged_by = NULL,
          acknowledged_reason = NULL
      WHERE state = ''resolved'';
  INSERT INTO detent_alert_notice (policy, scope, episode, kind, severity, message, facts, value, since, at)
    SELECT policy, scope, episode, ''firing'', severity, message, facts, value, since, since
      FROM detent_alert WHERE policy = NEW.policy AND scope = NEW.scope AND raised = 1;
END'),
    ('trigger', 'detent_alert_event_resolves', 'CREATE TRIGGER detent_alert_event_resolves INSTEAD OF INSERT ON detent_alert_event
  FOR EACH ROW WHEN NEW.severity IS NULL
    AND EXISTS (SELECT 1 FROM detent_alert a WHERE a.policy = NEW.policy AND a.scope = NEW.scope AND a.state = ''firing'')
BEGIN
  INSERT INTO detent_transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    SELECT ''alert'', policy || CASE scope WHEN '''' THEN '''' ELSE ''/'' || scope END, ''firing'', ''resolved'', ''resolve'', ''system'',
           substr(NEW.message, 1, 2000), max(NEW.at, last_at)
      FROM detent_alert WHERE policy = NEW.policy AND scope = NEW.scope;
  UPDATE detent_alert SET state = ''resolved'', resolved_at = max(NEW.at, last_at), told_at = max(NEW.at, last_at)
   WHERE policy = NEW.policy AND scope = NEW.scope;
  INSERT INTO detent_alert_notice (policy, scope, episode, kind, severity, message, facts, value, since, at)
    SELECT policy, scope, episode, ''resolved'', severity, substr(NEW.message, 1, 2000), facts, value, since, resolved_at
      FROM detent_alert WHERE policy = NEW.policy AND scope = NEW.scope;
END'),
    ('trigger', 'detent_batch_run_begins', 'CREATE TRIGGER detent_batch_run_begins BEFORE INSERT ON detent_batch_run
  FOR EACH ROW WHEN NEW.state <> ''preview'' OR NEW.total <> 0 OR NEW.outstanding <> 0
    OR EXISTS (SELECT 1 FROM detent_batch_run WHERE id = NEW.id)
BEGIN
  SELECT RAISE(ABORT, ''DT002 batch_run: it must begin once, in state preview, without targets'');
END'),
    ('trigger', 'detent_batch_run_frozen', 'CREATE TRIGGER detent_batch_run_frozen BEFORE UPDATE OF id, tenant, batch, payload, fingerprint, actor, created_at ON detent_batch_run
  FOR EACH ROW WHEN NEW.id IS NOT OLD.id OR NEW.tenant IS NOT OLD.tenant OR NEW.batch IS NOT OLD.batch OR NEW.payload IS NOT OLD.payload OR NEW.fingerprint IS NOT OLD.fingerprint OR NEW.actor IS NOT OLD.actor OR NEW.created_at IS NOT OLD.created_at
BEGIN
  SELECT RAISE(ABORT, ''DT041 batch_run: id, tenant, batch, payload, fingerprint, actor, created_at are written once'');
END'),
    ('trigger', 'detent_batch_run_goes', 'CREATE TRIGGER detent_batch_run_goes BEFORE DELETE ON detent_batch_run
  FOR EACH ROW WHEN (
      OLD.state IN (''preview'', ''applied'', ''failed'', ''partial'', ''rolled_back'') AND OLD.outstanding = 0 AND OLD.reconcile_at IS NULL
      AND OLD.moved_at < (SELECT max(before) FROM detent_horizon)
  ) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, ''DT041 batch_run: it is at work, to be looked at, or not below the horizon of retention'');
END'),
    ('trigger', 'detent_batch_run_guard', 'CREATE TRIGGER detent_batch_run_guard BEFORE UPDATE OF state ON detent_batch_run
  FOR EACH ROW WHEN OLD.state IS NOT NEW.state
BEGIN
  SELECT CASE
    WHEN EXISTS (
      SELECT 1 FROM (SELECT from_state, to_state, trigger FROM detent_transition_log
                      WHERE job_id IS NULL AND entity = ''batch_run'' AND entity_id = CAST(OLD.id AS TEXT)
                      ORDER BY n DESC LIMIT 1) last
       WHERE last.from_state = OLD.state AND last.to_state = NEW.state AND (last.trigger = ''repair'' OR (OLD.state = ''preview'' AND NEW.state = ''queued'') OR (OLD.state = ''queued'' AND NEW.state = ''applying'') OR (OLD.state = ''applying'' AND NEW.state = ''applied'') OR (OLD.state = ''applying'' AND NEW.state = ''partial'') OR (OLD.state = ''applying'' AND NEW.state = ''failed'') OR (OLD.state = ''partial'' AND NEW.state = ''applying'') OR (OLD.state = ''failed'' AND NEW.state = ''applying'') OR (OLD.state = ''applied'' AND NEW.state = ''queued'') OR (OLD.state = ''partial'' AND NEW.state = ''queued'') OR (OLD.state = ''failed'' AND NEW.state = ''queued'') OR (OLD.state = ''failed'' AND NEW.state = ''partial'') OR (OLD.state = ''applied'' AND NEW.state = ''rolled_back'') OR (OLD.state = ''partial'' AND NEW.state = ''rolled_back'')))
      THEN NULL
    WHEN (OLD.state = ''preview'' AND NEW.state = ''queued'') OR (OLD.state = ''queued'' AND NEW.state = ''applying'') OR (OLD.state = ''applying'' AND NEW.state = ''applied'') OR (OLD.state = ''applying'' AND NEW.state = ''partial'') OR (OLD.state = ''applying'' AND NEW.state = ''failed'') OR (OLD.state = ''partial'' AND NEW.state = ''applying'') OR (OLD.state = ''failed'' AND NEW.state = ''applying'') OR (OLD.state = ''applied'' AND NEW.state = ''queued'') OR (OLD.state = ''partial'' AND NEW.state = ''queued'') OR (OLD.state = ''failed'' AND NEW.state = ''queued'') OR (OLD.state = ''failed'' AND NEW.state = ''partial'') OR (OLD.state = ''applied'' AND NEW.state = ''rolled_back'') OR (OLD.state = ''partial'' AND NEW.state = ''rolled_back'')
      THEN RAISE(ABORT, ''DT041 batch_run: this move is made only together with its line in transition_log'')
    ELSE RAISE(ABORT, ''DT002 batch_run: it cannot go from its state to that one'')
  END;
END'),
    ('trigger', 'detent_batch_run_mismatches', 'CREATE TRIGGER detent_batch_run_mismatches AFTER UPDATE OF mismatches, reconciled_at ON detent_batch_run
  FOR EACH ROW WHEN NEW.mismatches > OLD.mismatches OR (NEW.mismatches = 0 AND OLD.mismatches > 0)
                    OR (NEW.mismatches > 0 AND NEW.reconciled_at IS NOT OLD.reconciled_at)
BEGIN
  INSERT INTO detent_alert_event (policy, scope, severity, message, facts, value, at)
    SELECT ''mismatches_found'', ''run:'' || NEW.id, ''warning'',
           ''Run '' || NEW.id || '' of '' || NEW.batch || '': '' || NEW.mismatches || '' of '' || NEW.applied || '' targets no longer match what was applied'',
           ''{"run_id":"'' || NEW.id || ''","batch":'' || json_quote(NEW.batch) || '',"tenant":'' || json_quote(NEW.tenant) || '',"applied":'' || NEW.applied
             || '',"failed":'' || NEW.failed || '',"mismatches":'' || NEW.mismatches || ''}'',
           NEW.mismatches, max(NEW.moved_at, coalesce(NEW.reconciled_at, NEW.moved_at))
     WHERE NEW.mismatches > 0;
  INSERT INTO detent_alert_event (policy, scope, message, at)
    SELECT ''mismatches_found'', ''run:'' || NEW.id,
           ''Run '' || NEW.id || '' of '' || NEW.batch || CASE WHEN NEW.rollback_requested_at IS NULL THEN '': every target matches what was applied again''
                                                           ELSE '' is rolled back'' END, max(NEW.moved_at, coalesce(NEW.reconciled_at, NEW.moved_at))
     WHERE NEW.mismatches = 0;
END'),
    ('trigger', 'detent_batch_run_settle', 'CREATE TRIGGER detent_batch_run_settle AFTER UPDATE OF queued, applying, applied, failed, outstanding, reverting, revert_failed ON detent_batch_run
  FOR EACH ROW WHEN
    (NEW.state = ''queued'' AND (NEW.applying > 0 OR NEW.applied + NEW.failed > OLD.applied + OLD.failed OR NEW.queued + NEW.outstanding = 0))
    OR (NEW.state = ''applying'' AND NEW.queued + NEW.applying + NEW.outstanding = 0)
    OR (NEW.state IN (''partial'', ''failed'') AND NEW.rollback_requested_at IS NULL
        AND (NEW.queued + NEW.applying + NEW.outstanding > 0 OR NEW.failed = 0
             OR (NEW.critical IS NULL AND (NEW.state = ''partial'') <> (NEW.applied + NEW.rolled_back > 0))))
    OR (NEW.rollback_requested_at IS NOT NULL AND NEW.state IN (''applied'', ''partial'')
        AND NEW.applied + NEW.outstanding + NEW.reverting + NEW.revert_failed = 0)
BEGIN
  INSERT INTO detent_transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, correlation_id, at)
    SELECT NEW.tenant, ''batch_run'', CAST(NEW.id AS TEXT), NEW.state, ''applying'', CASE NEW.state WHEN ''queued'' THEN ''begin'' ELSE ''retry_failed'' END,
           ''system'', NEW.correlation_id, NEW.moved_at
     WHERE NEW.state IN (''queued'', ''partial'', ''failed'') AND NEW.rollback_requested_at IS NULL;
  UPDATE detent_batch_run
     SET state = ''applying'', started_at = coalesce(started_at, moved_at), finished_at = NULL, reconcile_at = NULL,
         critical = CASE WHEN state = ''queued'' THEN critical END
   WHERE id = NEW.id AND state IN (''queued'', ''partial'', ''failed'') AND rollback_requested_at IS NULL;
  INSERT INTO detent_transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, correlation_id, at)
    SELECT NEW.tenant, ''batch_run'', CAST(NEW.id AS TEXT), ''applying'',
           CASE WHEN failed = 0 THEN ''applied'' WHEN critical IS NULL AND applied + rolled_back > 0 THEN ''partial'' ELSE ''failed'' END,
           CASE WHEN failed = 0 THEN ''complete'' WHEN critical IS NULL AND applied + rolled_back > 0 THEN ''complete_in_part'' ELSE ''fail'' END,
           ''system'', CASE WHEN failed > 0 THEN critical END, NEW.correlation_id, NEW.moved_at
      FROM detent_batch_run WHERE id = NEW.id AND state = ''applying'' AND queued + applying + outstanding = 0;
  INSERT INTO detent_alert_event (policy, scope, severity, message, facts, value, at)
    SELECT CASE WHEN critical IS NULL AND applied + rolled_back > 0 THEN ''run_partial'' ELSE ''run_failed'' END, ''run:'' || id,
           CASE WHEN critical IS NULL AND applied + rolled_back > 0 THEN ''warning'' ELSE ''critical'' END,
           ''Run '' || id || '' of '' || batch || '' is '' || CASE WHEN critical IS NULL AND applied + rolled_back > 0 THEN ''partial'' ELSE ''failed'' END || '': ''
             || failed || '' targets failed, '' || applied || '' were applied'' || coalesce(''. It was stopped by a critical error: '' || critical, ''''),
           ''{"run_id":"'' || id || ''","batch":'' || json_quote(batch) || '',"tenant":'' || json_quote(tenant) || '',"applied":'' || applied
             || '',"failed":'' || failed || '',"mismatches":'' || mismatches || ''}'',
           failed, moved_at
      FROM detent_batch_run
     WHERE id = NEW.id AND state = ''applying'' AND queued + applying + outstanding = 0 AND failed > 0
       AND (failed > coalesce(tolerate_count, coalesce(tolerate_share, 0) * (applied + failed)) OR critical IS NOT NULL);
  INSERT INTO detent_alert_event (policy, scope, message, at)
    SELECT p.policy, ''run:'' || id,
           ''Run '' || id || '' of '' || batch || '' is ''
             || CASE WHEN failed = 0 THEN ''applied'' WHEN critical IS NULL AND applied + rolled_back > 0 THEN ''partial'' ELSE ''failed'' END, moved_at
      FROM (SELECT value AS policy FROM json_each(''["run_failed","run_partial"]'')) p CROSS JOIN detent_batch_run
     WHERE id = NEW.id AND state = ''applying'' AND queued + applying + outstanding = 0
       AND (failed <= coalesce(tolerate_count, coalesce(tolerate_share, 0) * (applied + failed)) AND (critical IS NULL OR failed = 0)
            OR p.policy <> CASE WHEN critical IS NULL AND applied + rolled_back > 0 THEN ''run_partial'' ELSE ''run_failed'' END);
  UPDATE detent_batch_run
     SET state = CASE WHEN failed = 0 THEN ''applied'' WHEN critical IS NULL AND applied + rolled_back > 0 THEN ''partial'' ELSE ''failed'' END,
         finished_at = moved_at, reconcile_no = 0,
         reconcile_at = CASE WHEN failed = 0 OR (critical IS NULL AND applied + rolled_back > 0) THEN moved_at + 300000000 END
   WHERE id = NEW.id AND state = ''applying'' AND queued + applying + outstanding = 0;
  INSERT INTO detent_transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, correlation_id, at)
    SELECT NEW.tenant, ''batch_run'', CAST(NEW.id AS TEXT), NEW.state, ''rolled_back'', ''roll_back'', NEW.rollback_requested_by, NEW.rollback_reason,
           NEW.correlation_id, NEW.moved_at
     WHERE NEW.rollback_requested_at IS NOT NULL AND NEW.state IN (''applied'', ''partial'')
       AND NEW.applied + NEW.outstanding + NEW.reverting + NEW.revert_failed = 0;
  INSERT INTO detent_alert_event (policy, scope, message, at)
    SELECT p.policy, ''run:'' || NEW.id, ''Run '' || NEW.id || '' of '' || NEW.batch || '' is rolled_back'', NEW.moved_at
      FROM (SELECT value AS policy FROM json_each(''["run_failed","run_partial"]'')) p
     WHERE NEW.rollback_requested_at IS NOT NULL AND NEW.state IN (''applied'', ''partial'')
       AND NEW.applied + NEW.outstanding + NEW.reverting + NEW.revert_failed = 0;
  UPDATE detent_batch_run SET state = ''rolled_back'', rolled_back_at = moved_at
   WHERE id = NEW.id AND rollback_requested_at IS NOT NULL AND state IN (''applied'', ''partial'')
     AND applied + outstanding + reverting + revert_failed = 0;
END'),
    ('trigger', 'detent_event_begins', 'CREATE TRIGGER detent_event_begins BEFORE INSERT ON detent_event
  WHEN EXISTS (SELECT 1 FROM detent_event WHERE job_id = NEW.job_id AND seq = NEW.seq)
    OR EXISTS (SELECT 1 FROM detent_event WHERE job_id = NEW.job_id AND key IS NOT NULL AND key = NEW.key)
BEGIN
  SELECT RAISE(ABORT, ''DT041 event is append-only: REPLACE refused'');
END'),
    ('trigger', 'detent_event_goes', 'CREATE TRIGGER detent_event_goes BEFORE DELETE ON detent_event WHEN (NOT EXISTS (SELECT 1 FROM detent_job WHERE id = OLD.job_id)) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, ''DT041 event is append-only: DELETE refused'');
END'),
    ('trigger', 'detent_event_keep', 'CREATE TRIGGER detent_event_keep BEFORE UPDATE ON detent_event
BEGIN
  SELECT RAISE(ABORT, ''DT041 event is append-only: UPDATE refused'');
END'),
    ('trigger', 'detent_execution_begins', 'CREATE TRIGGER detent_execution_begins BEFORE INSERT ON detent_execution
  WHEN EXISTS (SELECT 1 FROM detent_execution WHERE job_id = NEW.job_id AND (+attempt = NEW.attempt OR (committed_at IS NOT NULL AND NEW.committed_at IS NOT NULL)))
BEGIN
  SELECT RAISE(ABORT, ''DT041 execution is append-only: REPLACE refused'');
END'),
    ('trigger', 'detent_execution_goes', 'CREATE TRIGGER detent_execution_goes BEFORE DELETE ON detent_execution WHEN (NOT EXISTS (SELECT 1 FROM detent_job WHERE id = OLD.job_id)) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, ''DT041 execution is append-only: DELETE refused'');
END'),
    ('trigger', 'detent_execution_keep', 'CREATE TRIGGER detent_execution_keep BEFORE UPDATE ON detent_execution
BEGIN
  SELECT RAISE(ABORT, ''DT041 execution is append-only: UPDATE refused'');
END'),
    ('trigger', 'detent_horizon_begins', 'CREATE TRIGGER detent_horizon_begins BEFORE INSERT ON detent_horizon
  WHEN EXISTS (SELECT 1 FROM detent_horizon WHERE n = NEW.n)
BEGIN
  SELECT RAISE(ABORT, ''DT041 horizon is append-only: REPLACE refused'');
END'),
    ('trigger', 'detent_horizon_goes', 'CREATE TRIGGER detent_horizon_goes BEFORE DELETE ON detent_horizon WHEN (
    OLD.before < (SELECT max(before) FROM detent_horizon) AND OLD.at < (SELECT max(before) FROM detent_horizon)
  ) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, ''DT041 horizon is append-only: DELETE refused'');
END'),
    ('trigger', 'detent_horizon_keep', 'CREATE TRIGGER detent_horizon_keep BEFORE UPDATE ON detent_horizon
BEGIN
  SELECT RAISE(ABORT, ''DT041 horizon is append-only: UPDATE refused'');
END'),
    ('trigger', 'detent_identity_begins', 'CREATE TRIGGER detent_identity_begins BEFORE INSERT ON detent_identity
  WHEN EXISTS (SELECT 1 FROM detent_identity WHERE n >= NEW.n OR first_id >= NEW.first_id)
BEGIN
  SELECT RAISE(ABORT, ''DT041 identity: numbers and first ids only grow'');
END'),
    ('trigger', 'detent_identity_goes', 'CREATE TRIGGER detent_identity_goes BEFORE DELETE ON detent_identity
BEGIN
  SELECT RAISE(ABORT, ''DT041 identity is append-only: DELETE refused'');
END'),
    ('trigger', 'detent_identity_keep', 'CREATE TRIGGER detent_identity_keep BEFORE UPDATE ON detent_identity
BEGIN
  SELECT RAISE(ABORT, ''DT041 identity is append-only: UPDATE refused'');
END'),
    ('trigger', 'detent_job_begins', 'CREATE TRIGGER detent_job_begins BEFORE INSERT ON detent_job
  FOR EACH ROW WHEN NEW.state <> ''pending'' OR NEW.attempt <> 0 OR NEW.ended <> 0 OR NEW.spared <> 0
    OR NEW.lease_id IS NOT NULL OR NEW.leased_at IS NOT NULL
    OR NEW.started_at IS NOT NULL OR NEW.committed_at IS NOT NULL
    OR EXISTS (SELECT 1 FROM detent_job WHERE id = NEW.id)
BEGIN
  SELECT RAISE(ABORT, ''DT002 job: it must begin once, in state pending, without attempts'');
END'),
    ('trigger', 'detent_job_counted', 'CREATE TRIGGER detent_job_counted AFTER UPDATE OF finished_at ON detent_job
  WHEN (NEW.finished_at IS NOT NULL OR OLD.finished_at IS NOT NULL) AND NEW.state <> OLD.state
    AND NOT (NEW.state = ''succeeded'' AND OLD.state = ''running'')
BEGIN
  INSERT INTO detent_finished_delta (tenant, queue, task, state, jobs)
    SELECT OLD.tenant, OLD.queue, OLD.task, OLD.state, -1 WHERE OLD.finished_at IS NOT NULL
    UNION ALL
    SELECT NEW.tenant, NEW.queue, NEW.task, NEW.state, 1 WHERE NEW.finished_at IS NOT NULL;
  DELETE FROM detent_unsuccessful WHERE state = OLD.state AND job_id = OLD.id;
  INSERT INTO detent_unsuccessful (state, job_id) SELECT NEW.state, NEW.id
   WHERE NEW.state IN (''failed'', ''cancelled'') AND NOT EXISTS (
     SELECT 1 FROM detent_unsuccessful WHERE state = NEW.state AND job_id = NEW.id);
END'),
    ('trigger', 'detent_job_effect', 'CREATE TRIGGER detent_job_effect AFTER UPDATE OF effect_told_by ON detent_job
WHEN NEW.effect_told_by IS NOT OLD.effect_told_by
  AND (NEW.effect_told_by IS NULL OR OLD.state <> ''running'' OR NEW.state <> ''running'' OR NEW.started_at IS NULL)
BEGIN
  SELECT RAISE(ABORT, ''DT041 effect_told_by of a job is set by the attempt that is in progress, and stays'');
END'),
    ('trigger', 'detent_job_frozen', 'CREATE TRIGGER detent_job_frozen AFTER UPDATE OF id, tenant, task, payload, run_id, nonce, created_at, attempts_max, dead_letter, idempotent ON detent_job
  FOR EACH ROW WHEN NEW.id IS NOT OLD.id OR NEW.tenant IS NOT OLD.tenant OR NEW.task IS NOT OLD.task OR NEW.payload IS NOT OLD.payload OR NEW.run_id IS NOT OLD.run_id OR NEW.nonce IS NOT OLD.nonce OR NEW.created_at IS NOT OLD.created_at OR NEW.attempts_max IS NOT OLD.attempts_max OR NEW.dead_letter IS NOT OLD.dead_letter OR NEW.idempotent IS NOT OLD.idempotent
BEGIN
  SELECT RAISE(ABORT, ''DT041 job: id, tenant, task, payload, run_id, nonce, created_at, attempts_max, dead_letter, idempotent are written once'');
END'),
    ('trigger', 'detent_job_goes', 'CREATE TRIGGER detent_job_goes BEFORE DELETE ON detent_job
  FOR EACH ROW WHEN (
      OLD.state IN (''cancelled'', ''failed'', ''quarantined'', ''succeeded'') AND OLD.finished_at < (SELECT max(before) FROM detent_horizon)
  ) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, ''DT041 job: it is not below the recorded horizon of retention'');
END'),
    ('trigger', 'detent_job_guard', 'CREATE TRIGGER detent_job_guard
  AFTER UPDATE OF state, attempt, ended, spared, lease_id, leased_at, started_at, committed_at, finished_at,
    result, error
  ON detent_job
  FOR EACH ROW WHEN (
      (OLD.state = ''running'' AND (NEW.state = ''succeeded'' OR NEW.state = ''pending'' OR NEW.state = ''failed'' OR NEW.state = ''cancelled'' OR NEW.state = ''quarantined'' OR NEW.state = ''running'') AND NEW.attempt = OLD.attempt AND NEW.lease_id = OLD.lease_id AND NEW.leased_at = OLD.leased_at AND NEW.spared >= OLD.spared AND (OLD.started_at IS NULL OR NEW.started_at = OLD.started_at OR (NEW.state <> ''running'' AND NEW.started_at BETWEEN OLD.leased_at AND OLD.started_at)) AND (OLD.committed_at IS NULL OR NEW.committed_at = OLD.committed_at))
   OR (OLD.state = ''pending'' AND NEW.state = ''running'' AND NEW.ended = OLD.ended AND NEW.spared = OLD.spared AND NEW.committed_at IS NULL AND NEW.started_at IS NULL)
  ) IS NOT TRUE
BEGIN
  SELECT CASE
    WHEN OLD.state = ''succeeded'' AND NEW.state = ''succeeded'' AND NEW.result IS NULL AND OLD.result_dropped_at IS NULL AND NEW.result_dropped_at IS NOT NULL
     AND NEW.error IS OLD.error AND NEW.finished_at IS OLD.finished_at AND NEW.attempt IS OLD.attempt AND NEW.ended IS OLD.ended AND NEW.spared IS OLD.spared AND NEW.lease_id IS OLD.lease_id AND NEW.leased_at IS OLD.leased_at AND NEW.started_at IS OLD.started_at AND NEW.committed_at IS OLD.committed_at
      THEN NULL
    WHEN OLD.committed_at IS NOT NULL AND NEW.committed_at IS NOT OLD.committed_at
      THEN RAISE(ABORT, ''DT041 job: committed_at is written once'')
    WHEN NEW.attempt < OLD.attempt OR NEW.ended < OLD.ended OR NEW.spared < OLD.spared
      THEN RAISE(ABORT, ''DT041 job: attempt, ended and spared only grow'')
    WHEN EXISTS (
      SELECT 1 FROM (SELECT from_state, to_state, attempt, trigger FROM detent_transition_log
                      WHERE job_id = OLD.id ORDER BY n DESC LIMIT 1) last
       WHERE last.from_state = OLD.state AND last.to_state = NEW.state
         AND (last.trigger = ''repair''
              OR (last.attempt = OLD.attempt AND NEW.attempt = OLD.attempt AND NEW.ended = OLD.ended
                  AND NEW.lease_id IS OLD.lease_id AND NEW.leased_at IS OLD.leased_at
                  AND NEW.started_at IS OLD.started_at AND ((OLD.state = ''pending'' AND NEW.state = ''cancelled'') OR (OLD.state = ''failed'' AND NEW.state = ''pending'') OR (OLD.state = ''quarantined'' AND NEW.state = ''pending'') OR (OLD.state = ''cancelled'' AND NEW.state = ''pending'') OR (OLD.state = ''quarantined'' AND NEW.state = ''cancelled'') OR (OLD.state = ''failed'' AND NEW.state = ''cancelled'') OR (OLD.state = ''pending'' AND NEW.state = ''quarantined'') OR (OLD.state = ''failed'' AND NEW.state = ''quarantined'') OR (OLD.state = ''failed'' AND NEW.state = ''succeeded'') OR (OLD.state = ''quarantined'' AND NEW.state = ''succeeded'')))))
      THEN NULL
    WHEN (OLD.state = ''pending'' AND NEW.state = ''cancelled'') OR (OLD.state = ''failed'' AND NEW.state = ''pending'') OR (OLD.state = ''quarantined'' AND NEW.state = ''pending'') OR (OLD.state = ''cancelled'' AND NEW.state = ''pending'') OR (OLD.state = ''quarantined'' AND NEW.state = ''cancelled'') OR (OLD.state = ''failed'' AND NEW.state = ''cancelled'') OR (OLD.state = ''pending'' AND NEW.state = ''quarantined'') OR (OLD.state = ''failed'' AND NEW.state = ''quarantined'') OR (OLD.state = ''failed'' AND NEW.state = ''succeeded'') OR (OLD.state = ''quarantined'' AND NEW.state = ''succeeded'')
      THEN RAISE(ABORT, ''DT041 job: this move is made only together with its line in transition_log'')
    WHEN OLD.state = NEW.state
      THEN RAISE(ABORT, ''DT041 job: attempts, lease, times and outcome change only together with its state'')
    ELSE RAISE(ABORT, ''DT002 job: it cannot go from its state to that one in this way'')
  END;
END'),
    ('trigger', 'detent_job_moves_run', 'CREATE TRIGGER detent_job_moves_run AFTER UPDATE OF state ON detent_job
  FOR EACH ROW WHEN NEW.run_id IS NOT NULL AND (NEW.state IN (''failed'', ''quarantined'', ''cancelled'')) <> (OLD.state IN (''failed'', ''quarantined'', ''cancelled''))
BEGIN
  UPDATE detent_batch_run
     SET stuck = stuck + CASE WHEN NEW.state IN (''failed'', ''quarantined'', ''cancelled'') THEN 1 ELSE -1 END,
         error = CASE WHEN NEW.state IN (''failed'', ''quarantined'', ''cancelled'') THEN coalesce(NEW.error, error) WHEN stuck > 1 THEN error END
   WHERE id = NEW.run_id
     AND NOT EXISTS (SELECT 1 FROM detent_target WHERE apply_job_id = NEW.id)
     AND NOT EXISTS (SELECT 1 FROM detent_target WHERE revert_job_id = NEW.id)
     AND NOT EXISTS (SELECT 1 FROM detent_reconciliation WHERE run_id = NEW.run_id AND job_id = NEW.id);
END'),
    ('trigger', 'detent_job_moves_target', 'CREATE TRIGGER detent_job_moves_target AFTER UPDATE OF state ON detent_job
  FOR EACH ROW WHEN NEW.run_id IS NOT NULL AND NEW.state <> OLD.state
BEGIN
  UPDATE detent_target
     SET state = CASE NEW.state WHEN ''pending'' THEN ''queued'' WHEN ''running'' THEN ''applying'' WHEN ''succeeded'' THEN ''applied'' ELSE ''failed'' END,
         applied_at = CASE WHEN NEW.state = ''succeeded'' THEN max(NEW.finished_at, moved_at) END,
         error = CASE WHEN NEW.state = ''pending'' THEN error WHEN NEW.state = ''running'' OR NEW.state = ''succeeded'' THEN NULL
                      ELSE coalesce(NEW.error, (SELECT ''Not begun: '' || b.critical FROM detent_batch_run b WHERE b.id = run_id)) END,
         conflict = CASE WHEN NEW.state = ''running'' OR NEW.state = ''succeeded'' THEN NULL ELSE conflict END,
         moved_at = max(moved_at, CASE NEW.state WHEN ''running'' THEN NEW.leased_at WHEN ''pending'' THEN
           coalesce((SELECT e.aborted_at FROM detent_execution e WHERE OLD.state = ''running'' AND e.job_id = NEW.id AND e.attempt = NEW.attempt), NEW.due_at)
           ELSE NEW.finished_at END)
   WHERE apply_job_id = NEW.id AND state <> CASE NEW.state WHEN ''pending'' THEN ''queued'' WHEN ''running'' THEN ''applying'' WHEN ''succeeded'' THEN ''applied'' ELSE ''failed'' END;
  UPDATE detent_target
     SET state = CASE WHEN NEW.state = ''succeeded'' THEN ''rolled_back'' ELSE state END, revert_state = CASE NEW.state WHEN ''succeeded'' THEN ''done'' WHEN ''pending'' THEN ''reverting'' WHEN ''running'' THEN ''reverting'' ELSE ''failed'' END,
         rolled_back_at = CASE WHEN NEW.state = ''succeeded'' THEN max(NEW.finished_at, moved_at) END,
         error = CASE WHEN NEW.state IN (''pending'', ''running'', ''succeeded'') THEN NULL
                      ELSE coalesce(NEW.error, (SELECT ''Not begun: '' || b.critical FROM detent_batch_run b WHERE b.id = run_id)) END,
         conflict = CASE WHEN NEW.state IN (''pending'', ''running'', ''succeeded'') THEN NULL ELSE conflict END,
         moved_at = max(moved_at, coalesce(NEW.finished_at, NEW.leased_at, NEW.created_at))
   WHERE revert_job_id = NEW.id AND revert_state <> CASE NEW.state WHEN ''succeeded'' THEN ''done'' WHEN ''pending'' THEN ''reverting'' WHEN ''running'' THEN ''reverting'' ELSE ''failed'' END;
END'),
    ('trigger', 'detent_job_ops_run', 'CREATE TRIGGER detent_job_ops_run AFTER UPDATE OF state, started_at ON detent_job
  FOR EACH ROW WHEN NEW.task = ''ops.run'' AND NEW.state <> OLD.state AND (
      (OLD.state = ''pending'' AND NEW.state IN (''running'', ''cancelled''))
   OR (OLD.state = ''running'' AND NEW.state = ''cancelled'')
   OR (OLD.state = ''running'' AND OLD.started_at IS NOT NULL AND NEW.state IN (''succeeded'', ''failed''))
   OR (SELECT trigger FROM detent_transition_log WHERE job_id = OLD.id ORDER BY n DESC LIMIT 1) = ''repair''
  ) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, ''DT002 ops_run: it cannot go from its state to that one'');
END'),
    ('trigger', 'detent_job_result', 'CREATE TRIGGER detent_job_result AFTER UPDATE OF result_dropped_at ON detent_job
WHEN NEW.result_dropped_at IS NOT OLD.result_dropped_at
  AND (OLD.result_dropped_at IS NULL AND OLD.result IS NOT NULL AND EXISTS (
    SELECT 1 FROM detent_task_times s
     WHERE s.task = OLD.task AND NEW.result_dropped_at >= OLD.finished_at + s.result_ttl * 1000000)) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, ''DT041 job: a result is dropped once, when the time that its task says is over'');
END'),
    ('trigger', 'detent_migration_begins', 'CREATE TRIGGER detent_migration_begins BEFORE INSERT ON detent_migration
  WHEN EXISTS (SELECT 1 FROM detent_migration WHERE version = NEW.version)
BEGIN
  SELECT RAISE(ABORT, ''DT041 migration is append-only: REPLACE refused'');
END'),
    ('trigger', 'detent_migration_goes', 'CREATE TRIGGER detent_migration_goes BEFORE DELETE ON detent_migration WHEN (FALSE) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, ''DT041 migration is append-only: DELETE refused'');
END'),
    ('trigger', 'detent_migration_keep', 'CREATE TRIGGER detent_migration_keep BEFORE UPDATE ON detent_migration
BEGIN
  SELECT RAISE(ABORT, ''DT041 migration is append-only: UPDATE refused'');
END'),
    ('trigger', 'detent_ops_environment_begins', 'CREATE TRIGGER detent_ops_environment_begins BEFORE INSERT ON detent_ops_environment
  FOR EACH ROW WHEN EXISTS (SELECT 1 FROM detent_ops_environment
    WHERE id = NEW.id OR (project_id = NEW.project_id AND name = NEW.name))
BEGIN
  SELECT RAISE(ABORT, ''DT041 ops_environment is written once: REPLACE refused'');
END'),
    ('trigger', 'detent_ops_environment_goes', 'CREATE TRIGGER detent_ops_environment_goes BEFORE DELETE ON detent_ops_environment
BEGIN
  SELECT RAISE(ABORT, ''DT041 ops_environment is written once: DELETE refused'');
END'),
    ('trigger', 'detent_ops_environment_keep', 'CREATE TRIGGER detent_ops_environment_keep BEFORE UPDATE ON detent_ops_environment
BEGIN
  SELECT RAISE(ABORT, ''DT041 ops_environment is written once: UPDATE refused'');
END'),
    ('trigger', 'detent_ops_run_begins', 'CREATE TRIGGER detent_ops_run_begins BEFORE INSERT ON detent_ops_run
  FOR EACH ROW WHEN EXISTS (SELECT 1 FROM detent_ops_run WHERE job_id = NEW.job_id)
BEGIN
  SELECT RAISE(ABORT, ''DT041 ops_run is written once: REPLACE refused'');
END'),
    ('trigger', 'detent_ops_run_goes', 'CREATE TRIGGER detent_ops_run_goes BEFORE DELETE ON detent_ops_run
  FOR EACH ROW WHEN EXISTS (SELECT 1 FROM detent_job WHERE id = OLD.job_id)
BEGIN
  SELECT RAISE(ABORT, ''DT041 ops_run is written once: DELETE refused'');
END'),
    ('trigger', 'detent_ops_run_keep', 'CREATE TRIGGER detent_ops_run_keep BEFORE UPDATE ON detent_ops_run
  FOR EACH ROW WHEN OLD.finish_metadata IS NOT NULL OR NEW.job_id <> OLD.job_id OR NEW.environment_id <> OLD.environment_id
    OR NEW.git_sha IS NOT OLD.git_sha OR NEW.git_ref IS NOT OLD.git_ref OR NEW.key IS NOT OLD.key
BEGIN
  SELECT RAISE(ABORT, ''DT041 ops_run is written once: UPDATE refused'');
END'),
    ('trigger', 'detent_partition_begins', 'CREATE TRIGGER detent_partition_begins BEFORE INSERT ON detent_partition
  FOR EACH ROW WHEN NEW.state <> ''pending'' OR NEW.pages <> 0 OR NEW.next_offset <> ''0''
    OR EXISTS (SELECT 1 FROM detent_partition WHERE run_id = NEW.run_id AND (n = NEW.n OR key = NEW.key))
    OR EXISTS (SELECT 1 FROM detent_partition WHERE job_id = NEW.job_id)
BEGIN
  SELECT RAISE(ABORT, ''DT002 partition: it must begin once, in state pending, at the first page'');
END'),
    ('trigger', 'detent_partition_frozen', 'CREATE TRIGGER detent_partition_frozen BEFORE UPDATE OF run_id, n, key, payload, job_id ON detent_partition
  FOR EACH ROW WHEN NEW.run_id IS NOT OLD.run_id OR NEW.n IS NOT OLD.n OR NEW.key IS NOT OLD.key
    OR NEW.payload IS NOT OLD.payload OR NEW.job_id IS NOT OLD.job_id
BEGIN
  SELECT RAISE(ABORT, ''DT041 partition: run, number, key, payload and job are written once'');
END'),
    ('trigger', 'detent_partition_guard', 'CREATE TRIGGER detent_partition_guard BEFORE UPDATE OF state, next_offset, last_page, pages ON detent_partition
  FOR EACH ROW WHEN OLD.state IS NOT NEW.state OR OLD.state IN (''completed'', ''failed'')
BEGIN
  SELECT CASE
    WHEN (
      (OLD.state = ''pending'' AND NEW.state = ''in_progress'')
      OR (OLD.state = ''in_progress'' AND NEW.state = ''fetching_pages'')
      OR (OLD.state = ''fetching_pages'' AND NEW.state = ''completed'')
      OR (OLD.state = ''fetching_pages'' AND NEW.state = ''failed'')
      OR (OLD.state = ''in_progress'' AND NEW.state = ''failed'')
      OR (OLD.state = ''pending'' AND NEW.state = ''failed'')
      OR (OLD.state = ''failed'' AND NEW.state = ''pending'')
      OR (OLD.state = ''failed'' AND NEW.state = ''fetching_pages'')
    ) IS NOT TRUE THEN RAISE(ABORT, ''DT002 partition: it cannot go from its state to that one'')
  END;
END'),
    ('trigger', 'detent_pipeline_enqueues', 'CREATE TRIGGER detent_pipeline_enqueues AFTER UPDATE OF state ON detent_pipeline_run
  FOR EACH ROW WHEN NEW.state IS NOT OLD.state
    AND (NEW.state = ''consolidation_triggered'' OR NEW.state = ''consolidation_skipped''
         OR (NEW.state = ''failed'' AND OLD.state <> ''consolidation_skipped''))
BEGIN
  INSERT INTO detent_lane_group (queue, task)
    SELECT NEW.queue, ''detent.pipeline.'' || CASE NEW.state WHEN ''consolidation_skipped'' THEN ''skipped/'' WHEN ''failed'' THEN ''failed/'' ELSE ''consolidate/'' END || NEW.name
     WHERE NOT EXISTS (
       SELECT 1 FROM detent_lane_group
        WHERE queue = NEW.queue
          AND task = ''detent.pipeline.'' || CASE NEW.state WHEN ''consolidation_skipped'' THEN ''skipped/'' WHEN ''failed'' THEN ''failed/'' ELSE ''consolidate/'' END || NEW.name);
  INSERT INTO detent_lane (id, queue, task, tenant, priority, limit_key)
    SELECT coalesce((SELECT max(l.id) FROM detent_lane l WHERE l.id > (g.id << 32) AND l.id < ((g.id + 1) << 32)), g.id << 32) + 1,
           g.queue, g.task, NEW.tenant, NEW.priority, ''''
      FROM detent_lane_group g
     WHERE g.queue = NEW.queue
       AND g.task = ''detent.pipeline.'' || CASE NEW.state WHEN ''consolidation_skipped'' THEN ''skipped/'' WHEN ''failed'' THEN ''failed/'' ELSE ''consolidate/'' END || NEW.name
       AND NOT EXISTS (
         SELECT 1 FROM detent_lane
          WHERE queue = g.queue AND task = g.task AND tenant = NEW.tenant AND priority = NEW.priority AND limit_key = '''');
  UPDATE detent_ids SET next = next + NEW.replicas;
  INSERT INTO detent_job (id, tenant, task, queue, priority, due_at, payload, run_id, nonce, created_at, attempts_max,
      dead_letter, idempotent)
    SELECT (SELECT next FROM detent_ids) - each.value, NEW.tenant,
           ''detent.pipeline.'' || CASE NEW.state WHEN ''consolidation_skipped'' THEN ''skipped/'' WHEN ''failed'' THEN ''failed/'' ELSE ''consolidate/'' END || NEW.name,
           NEW.queue, NEW.priority, NEW.moved_at, ''{"run_id":'' || NEW.id || ''}'', NEW.id, abs(random() / 2), NEW.moved_at,
           1000000, 0, 1
      FROM json_each(''[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]'') each
     WHERE each.value = 1
        OR (NEW.state = ''consolidation_triggered'' AND each.value <= NEW.replicas
            AND (each.value - 1) * NEW.portion_size < (SELECT sum(p.staged) FROM detent_partition p WHERE p.run_id = NEW.id));
  INSERT INTO detent_ready (lane_id, ready_at, job_id, holds_key)
    SELECT l.id, j.due_at, j.id, 0
      FROM detent_job j
      JOIN detent_lane l ON l.queue = j.queue AND l.task = j.task AND l.tenant = j.tenant AND l.priority = j.priority
                        AND l.limit_key = ''''
     WHERE j.id >= (SELECT next FROM detent_ids) - NEW.replicas AND j.id < (SELECT next FROM detent_ids)
       AND j.run_id = NEW.id;
  INSERT INTO detent_job_span (created_at, block, first_id, last_id)
    SELECT created_at, id >> 10, min(id), max(id) FROM detent_job
     WHERE id >= (SELECT next FROM detent_ids) - NEW.replicas AND id < (SELECT next FROM detent_ids) AND run_id = NEW.id
     GROUP BY created_at, id >> 10;
END'),
    ('trigger', 'detent_pipeline_fans_in', 'CREATE TRIGGER detent_pipeline_fans_in AFTER UPDATE OF parts_ended, state ON detent_pipeline_run
  FOR EACH ROW WHEN NEW.state = ''workers_running'' AND NEW.parts_ended = NEW.partitions
BEGIN
  INSERT INTO detent_transition_log
      (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, forced, at)
    VALUES (NEW.tenant, ''pipeline_run'', CAST(NEW.id AS TEXT), ''workers_running'',
            CASE WHEN NEW.parts_failed <= NEW.tolerated OR NEW.is_forced
                 THEN ''consolidation_triggered'' ELSE ''consolidation_skipped'' END,
            CASE WHEN NEW.parts_failed <= NEW.tolerated OR NEW.is_forced THEN ''fan_in'' ELSE ''skip'' END,
            CASE WHEN NEW.parts_failed > NEW.tolerated AND NEW.is_forced THEN NEW.started_by ELSE ''system'' END,
            CASE WHEN NEW.parts_failed > NEW.tolerated AND NEW.is_forced THEN NEW.reason
                 WHEN NEW.parts_failed > 0 THEN NEW.parts_failed || '' of '' || NEW.partitions || '' partitions failed'' END,
            NEW.parts_failed > NEW.tolerated AND NEW.is_forced, NEW.moved_at);
  UPDATE detent_pipeline_run
     SET state = CASE WHEN NEW.parts_failed <= NEW.tolerated OR NEW.is_forced
                      THEN ''consolidation_triggered'' ELSE ''consolidation_skipped'' END
   WHERE id = NEW.id;
END'),
    ('trigger', 'detent_pipeline_follows_job', 'CREATE TRIGGER detent_pipeline_follows_job AFTER UPDATE OF state ON detent_job
  FOR EACH ROW WHEN NEW.run_id IS NOT NULL AND NEW.task LIKE ''detent.pipeline.%'' AND NEW.state IS NOT OLD.state
BEGIN
  UPDATE detent_partition
     SET tries = tries + 1, started_at = coalesce(started_at, NEW.leased_at),
         state = CASE state WHEN ''pending'' THEN ''in_progress'' ELSE state END
   WHERE NEW.state = ''running'' AND job_id = NEW.id AND state IN (''pending'', ''in_progress'', ''fetching_pages'');
  UPDATE detent_partition SET tries = tries - 1
   WHERE OLD.state = ''running'' AND NEW.state = ''pending'' AND NEW.spared > OLD.spared AND job_id = NEW.id AND tries > 0;
  UPDATE detent_partition SET state = ''completed'', ended_at = NEW.finished_at
   WHERE NEW.state = ''succeeded'' AND job_id = NEW.id AND state = ''fetching_pages'';
  UPDATE detent_partition
     SET state = ''failed'', ended_at = NEW.finished_at,
         error = coalesce(NEW.error, NEW.cancel_reason, (
           SELECT l.reason FROM detent_transition_log l
            WHERE l.job_id = NEW.id AND l.to_state = ''cancelled'' AND NEW.state = ''cancelled'' ORDER BY l.n DESC LIMIT 1
         ), ''its job was '' || NEW.state)
   WHERE NEW.state IN (''failed'', ''quarantined'', ''cancelled'') AND job_id = NEW.id
     AND state IN (''pending'', ''in_progress'', ''fetching_pages'');
  -- A worker takes up the consolidation.
  INSERT INTO detent_transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, at)
    SELECT r.tenant, ''pipeline_run'', CAST(r.id AS TEXT), r.state, ''consolidating'', ''consolidate'',
           coalesce((SELECT l.worker FROM detent_lease l WHERE l.id = NEW.lease_id), ''worker''), max(r.moved_at, NEW.leased_at)
      FROM detent_pipeline_run r
     WHERE r.id = NEW.run_id AND r.state = ''consolidation_triggered'' AND NEW.state = ''running''
       AND NEW.task LIKE ''detent.pipeline.consolidate/%'';
  UPDATE detent_pipeline_run SET state = ''consolidating'', moved_at = max(moved_at, NEW.leased_at)
   WHERE id = NEW.run_id AND state = ''consolidation_triggered'' AND NEW.state = ''running''
     AND NEW.task LIKE ''detent.pipeline.consolidate/%'';
  -- A job that the run cannot do without came to rest without success; or the run was skipped, and that was said.
  INSERT INTO detent_transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    SELECT r.tenant, ''pipeline_run'', CAST(r.id AS TEXT), r.state, ''failed'', ''fail'', ''system'',
           CASE WHEN r.state = ''consolidation_skipped'' AND NEW.state = ''succeeded'' THEN ''nobody has forced it''
                ELSE ''job '' || NEW.id || '' is '' || NEW.state || coalesce('': '' || coalesce(NEW.cancel_reason, (
                       SELECT l.reason FROM detent_transition_log l
                        WHERE l.job_id = NEW.id AND l.to_state = ''cancelled'' AND NEW.state = ''cancelled''
                        ORDER BY l.n DESC LIMIT 1
                     )), '''') END,
           max(r.moved_at, NEW.finished_at)
      FROM detent_pipeline_run r
     WHERE r.id = NEW.run_id
       AND ((r.state = ''created'' AND r.plan_job_id = NEW.id AND NEW.state IN (''failed'', ''quarantined'', ''cancelled''))
            OR (r.state IN (''consolidation_triggered'', ''consolidating'')
                AND NEW.task LIKE ''detent.pipeline.consolidate/%'' AND NEW.state IN (''failed'', ''quarantined'', ''cancelled''))
            OR (r.state = ''consolidation_skipped'' AND NEW.task LIKE ''detent.pipeline.skipped/%''
                AND NEW.state IN (''succeeded'', ''failed'', ''quarantined'', ''cancelled'')));
  UPDATE detent_pipeline_run
     SET state = ''failed'', finished_at = max(moved_at, NEW.finished_at), moved_at = max(moved_at, NEW.finished_at),
         error = CASE WHEN state = ''consolidation_skipped''
                      THEN parts_failed || '' of '' || partitions || '' partitions failed: nothing was consolidated''
                      ELSE coalesce(NEW.error, NEW.cancel_reason, (
                        SELECT l.reason FROM detent_transition_log l
                         WHERE l.job_id = NEW.id AND l.to_state = ''cancelled'' AND NEW.state = ''cancelled''
                         ORDER BY l.n DESC LIMIT 1
                      ), ''its job was '' || NEW.state) END
   WHERE id = NEW.run_id
     AND ((state = ''created'' AND plan_job_id = NEW.id AND NEW.state IN (''failed'', ''quarantined'', ''cancelled''))
          OR (state IN (''consolidation_triggered'', ''consolidating'')
              AND NEW.task LIKE ''detent.pipeline.consolidate/%'' AND NEW.state IN (''failed'', ''quarantined'', ''cancelled''))
          OR (state = ''consolidation_skipped'' AND NEW.task LIKE ''detent.pipeline.skipped/%''
              AND NEW.state IN (''succeeded'', ''failed'', ''quarantined'', ''cancelled'')));
END'),
    ('trigger', 'detent_pipeline_follows_partition', 'CREATE TRIGGER detent_pipeline_follows_partition AFTER UPDATE OF state ON detent_partition
  FOR EACH ROW WHEN NEW.state IS NOT OLD.state AND (NEW.state = ''completed'' OR NEW.state = ''failed'')
BEGIN
  UPDATE detent_pipeline_run
     SET parts_ended = parts_ended + 1, parts_failed = parts_failed + (NEW.state = ''failed''),
         moved_at = max(moved_at, NEW.ended_at)
   WHERE id = NEW.run_id;
END'),
    ('trigger', 'detent_pipeline_run_begins', 'CREATE TRIGGER detent_pipeline_run_begins BEFORE INSERT ON detent_pipeline_run
  FOR EACH ROW WHEN NEW.state <> ''created'' OR NEW.partitions <> 0 OR NEW.parts_ended <> 0
    OR EXISTS (SELECT 1 FROM detent_pipeline_run WHERE id = NEW.id)
BEGIN
  SELECT RAISE(ABORT, ''DT002 pipeline_run: it must begin once, in state created, without partitions'');
END'),
    ('trigger', 'detent_pipeline_run_frozen', 'CREATE TRIGGER detent_pipeline_run_frozen
  BEFORE UPDATE OF id, tenant, name, payload, watermark, since, captured_at, is_full, is_forced, plan_job_id, created_at
  ON detent_pipeline_run
  FOR EACH ROW WHEN NEW.id IS NOT OLD.id OR NEW.tenant IS NOT OLD.tenant OR NEW.name IS NOT OLD.name
    OR NEW.payload IS NOT OLD.payload OR NEW.watermark IS NOT OLD.watermark OR NEW.since IS NOT OLD.since
    OR NEW.captured_at IS NOT OLD.captured_at OR NEW.is_full IS NOT OLD.is_full OR NEW.is_forced IS NOT OLD.is_forced
    OR NEW.plan_job_id IS NOT OLD.plan_job_id OR NEW.created_at IS NOT OLD.created_at
BEGIN
  SELECT RAISE(ABORT, ''DT041 pipeline_run: what it was started for is written once'');
END'),
    ('trigger', 'detent_pipeline_run_goes', 'CREATE TRIGGER detent_pipeline_run_goes BEFORE DELETE ON detent_pipeline_run
  FOR EACH ROW WHEN OLD.state NOT IN (''completed'', ''failed'')
BEGIN
  SELECT RAISE(ABORT, ''DT041 pipeline_run: it has not ended'');
END'),
    ('trigger', 'detent_pipeline_run_guard', 'CREATE TRIGGER detent_pipeline_run_guard BEFORE UPDATE OF state ON detent_pipeline_run
  FOR EACH ROW WHEN OLD.state IS NOT NEW.state
BEGIN
  SELECT CASE
    WHEN (
      (OLD.state = ''created'' AND NEW.state = ''workers_running'')
      OR (OLD.state = ''workers_running'' AND NEW.state = ''consolidation_triggered'')
      OR (OLD.state = ''consolidation_triggered'' AND NEW.state = ''consolidating'')
      OR (OLD.state = ''consolidating'' AND NEW.state = ''completed'')
      OR (OLD.state = ''workers_running'' AND NEW.state = ''consolidation_skipped'')
      OR (OLD.state = ''consolidation_skipped'' AND NEW.state = ''failed'')
      OR (OLD.state = ''consolidating'' AND NEW.state = ''failed'')
      OR (OLD.state = ''consolidation_triggered'' AND NEW.state = ''failed'')
      OR (OLD.state = ''created'' AND NEW.state = ''failed'')
      OR (OLD.state = ''consolidation_skipped'' AND NEW.state = ''consolidation_triggered'')
      OR (OLD.state = ''failed'' AND NEW.state = ''workers_running'')
      OR (OLD.state = ''consolidation_skipped'' AND NEW.state = ''workers_running'')
      OR (OLD.state = ''failed'' AND NEW.state = ''consolidation_triggered'')
    ) IS NOT TRUE THEN RAISE(ABORT, ''DT002 pipeline_run: it cannot go from its state to that one'')
    WHEN EXISTS (
      SELECT 1 FROM (SELECT from_state, to_state FROM detent_transition_log
                      WHERE job_id IS NULL AND entity = ''pipeline_run'' AND entity_id = CAST(OLD.id AS TEXT)
                      ORDER BY n DESC LIMIT 1) last
       WHERE last.from_state = OLD.state AND last.to_state = NEW.state)
      THEN NULL
    ELSE RAISE(ABORT, ''DT041 pipeline_run: it moves only together with its line in transition_log'')
  END;
END'),
    ('trigger', 'detent_target_begins', 'CREATE TRIGGER detent_target_begins BEFORE INSERT ON detent_target
  FOR EACH ROW WHEN NEW.state <> ''preview'' OR NEW.previewed_at IS NOT NULL
    OR EXISTS (SELECT 1 FROM detent_target WHERE run_id = NEW.run_id AND n = NEW.n)
    OR EXISTS (SELECT 1 FROM detent_target WHERE run_id = NEW.run_id AND ref = NEW.ref)
BEGIN
  SELECT RAISE(ABORT, ''DT002 target: it must begin once, in state preview, without a preview'');
END'),
    ('trigger', 'detent_target_counts', 'CREATE TRIGGER detent_target_counts AFTER UPDATE OF state, revert_state, conflict ON detent_target
  FOR EACH ROW WHEN NEW.state <> OLD.state OR NEW.revert_state IS NOT OLD.revert_state OR NEW.conflict IS NOT OLD.conflict
BEGIN
  UPDATE detent_batch_run
     SET queued = queued + (NEW.state = ''queued'') - (OLD.state = ''queued''),
         applying = applying + (NEW.state = ''applying'') - (OLD.state = ''applying''),
         applied = applied + (NEW.state = ''applied'') - (OLD.state = ''applied''),
         failed = failed + (NEW.state = ''failed'') - (OLD.state = ''failed''),
         rolled_back = rolled_back + (NEW.state = ''rolled_back'') - (OLD.state = ''rolled_back''),
         reverting = reverting + (NEW.revert_state IS ''reverting'') - (OLD.revert_state IS ''reverting''),
         revert_failed = revert_failed + (NEW.revert_state IS ''failed'') - (OLD.revert_state IS ''failed''),
         conflicts = conflicts + (NEW.conflict IS NOT NULL) - (OLD.conflict IS NOT NULL),
         moved_at = max(moved_at, NEW.moved_at)
   WHERE id = NEW.run_id;
END'),
    ('trigger', 'detent_target_counts_new', 'CREATE TRIGGER detent_target_counts_new AFTER INSERT ON detent_target
BEGIN
  UPDATE detent_batch_run SET total = total + 1, moved_at = max(moved_at, NEW.moved_at) WHERE id = NEW.run_id;
END'),
    ('trigger', 'detent_target_counts_previewed', 'CREATE TRIGGER detent_target_counts_previewed AFTER UPDATE OF previewed_at ON detent_target
  FOR EACH ROW WHEN NEW.previewed_at IS NOT NULL AND OLD.previewed_at IS NULL
BEGIN
  UPDATE detent_batch_run
     SET previewed = previewed + (NEW.changed IS NOT NULL), preview_failed = preview_failed + (NEW.preview_error IS NOT NULL),
         unchanged = unchanged + (NEW.changed IS 0), moved_at = max(moved_at, NEW.moved_at)
   WHERE id = NEW.run_id;
END'),
    ('trigger', 'detent_target_frozen', 'CREATE TRIGGER detent_target_frozen BEFORE UPDATE OF run_id, n, ref, created_at, apply_job_id, revert_job_id, before, after, changed, preview_error, previewed_at ON detent_target
  FOR EACH ROW WHEN NEW.run_id IS NOT OLD.run_id OR NEW.n IS NOT OLD.n OR NEW.ref IS NOT OLD.ref OR NEW.created_at IS NOT OLD.created_at OR (OLD.previewed_at IS NOT NULL AND NEW.before IS NOT OLD.before) OR (OLD.previewed_at IS NOT NULL AND NEW.after IS NOT OLD.after) OR (OLD.previewed_at IS NOT NULL AND NEW.changed IS NOT OLD.changed) OR (OLD.previewed_at IS NOT NULL AND NEW.preview_error IS NOT OLD.preview_error) OR (OLD.previewed_at IS NOT NULL AND NEW.previewed_at IS NOT OLD.previewed_at) OR (OLD.apply_job_id IS NOT NULL AND NEW.apply_job_id IS NOT OLD.apply_job_id) OR (OLD.revert_job_id IS NOT NULL AND NEW.revert_job_id IS NOT OLD.revert_job_id)
BEGIN
  SELECT RAISE(ABORT, ''DT041 target: run_id, n, ref, created_at, apply_job_id, revert_job_id, before, after, changed, preview_error, previewed_at are written once'');
END'),
    ('trigger', 'detent_target_goes', 'CREATE TRIGGER detent_target_goes BEFORE DELETE ON detent_target
  FOR EACH ROW WHEN EXISTS (SELECT 1 FROM detent_batch_run WHERE id = OLD.run_id)
BEGIN
  SELECT RAISE(ABORT, ''DT041 target: it goes only with its batch_run'');
END'),
    ('trigger', 'detent_target_guard', 'CREATE TRIGGER detent_target_guard BEFORE UPDATE OF state ON detent_target
  FOR EACH ROW WHEN OLD.state IS NOT NEW.state
BEGIN
  SELECT CASE
    WHEN ((OLD.state = ''preview'' AND NEW.state = ''queued'') OR (OLD.state = ''queued'' AND NEW.state = ''applying'') OR (OLD.state = ''applying'' AND NEW.state = ''applied'') OR (OLD.state = ''applying'' AND NEW.state = ''queued'') OR (OLD.state = ''applying'' AND NEW.state = ''failed'') OR (OLD.state = ''failed'' AND NEW.state = ''queued'') OR (OLD.state = ''applied'' AND NEW.state = ''rolled_back'') OR (OLD.state = ''queued'' AND NEW.state = ''failed'') OR (OLD.state = ''failed'' AND NEW.state = ''applied'')) AND EXISTS (
      SELECT 1 FROM detent_job j
       WHERE j.id = CASE WHEN NEW.state = ''rolled_back'' THEN NEW.revert_job_id ELSE NEW.apply_job_id END
         AND CASE NEW.state WHEN ''queued'' THEN j.state = ''pending'' WHEN ''applying'' THEN j.state = ''running''
                            WHEN ''failed'' THEN j.state IN (''failed'', ''quarantined'', ''cancelled'')
                            ELSE j.state = ''succeeded'' END)
      THEN NULL
    WHEN EXISTS (
      SELECT 1 FROM (SELECT from_state, to_state, trigger FROM detent_transition_log
                      WHERE job_id IS NULL AND entity = ''target'' AND entity_id = OLD.run_id || ''/'' || OLD.n
                      ORDER BY n DESC LIMIT 1) last
       WHERE last.trigger = ''repair'' AND last.from_state = OLD.state AND last.to_state = NEW.state)
      THEN NULL
    WHEN (OLD.state = ''preview'' AND NEW.state = ''queued'') OR (OLD.state = ''queued'' AND NEW.state = ''applying'') OR (OLD.state = ''applying'' AND NEW.state = ''applied'') OR (OLD.state = ''applying'' AND NEW.state = ''queued'') OR (OLD.state = ''applying'' AND NEW.state = ''failed'') OR (OLD.state = ''failed'' AND NEW.state = ''queued'') OR (OLD.state = ''applied'' AND NEW.state = ''rolled_back'') OR (OLD.state = ''queued'' AND NEW.state = ''failed'') OR (OLD.state = ''failed'' AND NEW.state = ''applied'')
      THEN RAISE(ABORT, ''DT041 target: this move is made only together with its job'')
    ELSE RAISE(ABORT, ''DT002 target: it cannot go from its state to that one'')
  END;
END'),
    ('trigger', 'detent_transition_log_begins', 'CREATE TRIGGER detent_transition_log_begins BEFORE INSERT ON detent_transition_log
  WHEN NEW.n IS NOT NULL AND EXISTS (SELECT 1 FROM detent_transition_log WHERE n = NEW.n)
BEGIN
  SELECT RAISE(ABORT, ''DT041 transition_log is append-only: REPLACE refused'');
END'),
    ('trigger', 'detent_transition_log_goes', 'CREATE TRIGGER detent_transition_log_goes BEFORE DELETE ON detent_transition_log WHEN (
    CASE WHEN OLD.job_id IS NOT NULL THEN NOT EXISTS (SELECT 1 FROM detent_job WHERE id = OLD.job_id)
         ELSE OLD.at < (SELECT max(before) FROM detent_horizon)
          AND CASE OLD.entity
                WHEN ''batch_run'' THEN NOT EXISTS (SELECT 1 FROM detent_batch_run WHERE id = CAST(OLD.entity_id AS INTEGER))
                WHEN ''pipeline_run'' THEN NOT EXISTS (SELECT 1 FROM detent_pipeline_run WHERE id = CAST(OLD.entity_id AS INTEGER))
                ELSE EXISTS (SELECT 1 FROM detent_transition_log l
                              WHERE l.job_id IS NULL AND l.entity = OLD.entity AND l.entity_id = OLD.entity_id
                                AND l.n > OLD.n AND l.at < (SELECT max(before) FROM detent_horizon))
              END
    END) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, ''DT041 transition_log is append-only: DELETE refused'');
END'),
    ('trigger', 'detent_transition_log_keep', 'CREATE TRIGGER detent_transition_log_keep BEFORE UPDATE ON detent_transition_log
BEGIN
  SELECT RAISE(ABORT, ''DT041 transition_log is append-only: UPDATE refused'');
END'),
    ('trigger', 'detent_watermark_begins', 'CREATE TRIGGER detent_watermark_begins BEFORE INSERT ON detent_watermark
  FOR EACH ROW WHEN EXISTS (SELECT 1 FROM detent_watermark WHERE tenant = NEW.tenant AND name = NEW.name)
    OR NOT EXISTS (SELECT 1 FROM detent_pipeline_run r
                    WHERE r.id = NEW.run_id AND r.state = ''completed'' AND r.tenant = NEW.tenant
                      AND r.watermark = NEW.name AND r.captured_at = NEW.value)
BEGIN
  SELECT RAISE(ABORT, ''DT041 watermark: it stands where a completed run of it captured the time'');
END'),
    ('trigger', 'detent_watermark_goes', 'CREATE TRIGGER detent_watermark_goes BEFORE DELETE ON detent_watermark
BEGIN
  SELECT RAISE(ABORT, ''DT041 watermark: it stays'');
END'),
    ('trigger', 'detent_watermark_guard', 'CREATE TRIGGER detent_watermark_guard BEFORE UPDATE ON detent_watermark
  FOR EACH ROW WHEN NEW.tenant IS NOT OLD.tenant OR NEW.name IS NOT OLD.name OR NEW.value < OLD.value
    OR NOT EXISTS (SELECT 1 FROM detent_pipeline_run r
                    WHERE r.id = NEW.run_id AND r.state = ''completed'' AND r.tenant = NEW.tenant
                      AND r.watermark = NEW.name AND r.captured_at = NEW.value)
BEGIN
  SELECT RAISE(ABORT, ''DT041 watermark: it moves forward, to where a completed run of it captured the time'');
END')
  )
SELECT w.type AS entity, w.name AS entity_id,
       CASE WHEN s.name IS NULL THEN 'it is missing' ELSE 'its definition was changed' END AS detail
  FROM wanted w LEFT JOIN sqlite_master s ON s.type = w.type AND s.name = w.name
 WHERE s.name IS NULL OR s.sql <> w.text
 ORDER BY 1, 2;
