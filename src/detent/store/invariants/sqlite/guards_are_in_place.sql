-- L2, E1, G4, R3: every guard is there, letter for letter; one that was dropped or changed is found.
-- Generated from the migrations by `python -m detent.store.invariants.generate`; a test keeps it equal.
-- differs: SQLite keeps the text of its schema, so the text is compared.
WITH wanted (type, name, text) AS (VALUES
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
    ('trigger', 'detent_horizon_goes', 'CREATE TRIGGER detent_horizon_goes BEFORE DELETE ON detent_horizon WHEN (FALSE) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, ''DT041 horizon is append-only: DELETE refused'');
END'),
    ('trigger', 'detent_horizon_keep', 'CREATE TRIGGER detent_horizon_keep BEFORE UPDATE ON detent_horizon
BEGIN
  SELECT RAISE(ABORT, ''DT041 horizon is append-only: UPDATE refused'');
END'),
    ('trigger', 'detent_job_begins', 'CREATE TRIGGER detent_job_begins BEFORE INSERT ON detent_job
  FOR EACH ROW WHEN NEW.state <> ''pending'' OR NEW.attempt <> 0 OR NEW.ended <> 0 OR NEW.spared <> 0
    OR NEW.lease_id IS NOT NULL OR NEW.leased_at IS NOT NULL
    OR NEW.started_at IS NOT NULL OR NEW.committed_at IS NOT NULL
    OR EXISTS (SELECT 1 FROM detent_job WHERE id = NEW.id)
BEGIN
  SELECT RAISE(ABORT, ''DT002 job: it must begin once, in state pending, without attempts'');
END'),
    ('trigger', 'detent_job_effect', 'CREATE TRIGGER detent_job_effect BEFORE UPDATE OF effect_told_by ON detent_job
WHEN NEW.effect_told_by IS NOT OLD.effect_told_by
  AND (NEW.effect_told_by IS NULL OR OLD.state <> ''running'' OR NEW.state <> ''running'' OR NEW.started_at IS NULL)
BEGIN
  SELECT RAISE(ABORT, ''DT041 effect_told_by of a job is set by the attempt that is in progress, and stays'');
END'),
    ('trigger', 'detent_job_frozen', 'CREATE TRIGGER detent_job_frozen BEFORE UPDATE OF id, tenant, task, payload, run_id, nonce, created_at, attempts_max, dead_letter, idempotent ON detent_job
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
  BEFORE UPDATE OF state, attempt, ended, spared, lease_id, leased_at, started_at, committed_at, finished_at,
    result, error
  ON detent_job
  FOR EACH ROW WHEN (
      (OLD.state = ''running'' AND (NEW.state = ''succeeded'' OR NEW.state = ''pending'' OR NEW.state = ''failed'' OR NEW.state = ''cancelled'' OR NEW.state = ''quarantined'' OR NEW.state = ''running'') AND NEW.attempt = OLD.attempt AND NEW.lease_id = OLD.lease_id AND NEW.leased_at = OLD.leased_at AND NEW.spared >= OLD.spared AND (OLD.started_at IS NULL OR NEW.started_at = OLD.started_at) AND (OLD.committed_at IS NULL OR NEW.committed_at = OLD.committed_at))
   OR (OLD.state = ''pending'' AND NEW.state = ''running'' AND NEW.ended = OLD.ended AND NEW.spared = OLD.spared AND NEW.committed_at IS NULL AND NEW.started_at IS NULL)
  ) IS NOT TRUE
BEGIN
  SELECT CASE
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
    ('trigger', 'detent_transition_log_begins', 'CREATE TRIGGER detent_transition_log_begins BEFORE INSERT ON detent_transition_log
  WHEN NEW.n IS NOT NULL AND EXISTS (SELECT 1 FROM detent_transition_log WHERE n = NEW.n)
BEGIN
  SELECT RAISE(ABORT, ''DT041 transition_log is append-only: REPLACE refused'');
END'),
    ('trigger', 'detent_transition_log_goes', 'CREATE TRIGGER detent_transition_log_goes BEFORE DELETE ON detent_transition_log WHEN (OLD.job_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM detent_job WHERE id = OLD.job_id)) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, ''DT041 transition_log is append-only: DELETE refused'');
END'),
    ('trigger', 'detent_transition_log_keep', 'CREATE TRIGGER detent_transition_log_keep BEFORE UPDATE ON detent_transition_log
BEGIN
  SELECT RAISE(ABORT, ''DT041 transition_log is append-only: UPDATE refused'');
END')
  )
SELECT w.type AS entity, w.name AS entity_id,
       CASE WHEN s.name IS NULL THEN 'it is missing' ELSE 'its definition was changed' END AS detail
  FROM wanted w LEFT JOIN sqlite_master s ON s.type = w.type AND s.name = w.name
 WHERE s.name IS NULL OR s.sql <> w.text
 ORDER BY 1, 2;
