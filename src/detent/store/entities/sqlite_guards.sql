-- Guards of the record: rows are added, and removed only by retention.

CREATE TRIGGER detent_execution_keep BEFORE UPDATE ON detent_execution
BEGIN
  SELECT RAISE(ABORT, 'DT041 execution is append-only: UPDATE refused');
END;

CREATE TRIGGER detent_execution_goes BEFORE DELETE ON detent_execution WHEN (NOT EXISTS (SELECT 1 FROM detent_job WHERE id = OLD.job_id)) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT041 execution is append-only: DELETE refused');
END;

CREATE TRIGGER detent_execution_begins BEFORE INSERT ON detent_execution
  WHEN EXISTS (SELECT 1 FROM detent_execution WHERE job_id = NEW.job_id AND attempt = NEW.attempt)
    OR (NEW.committed_at IS NOT NULL
        AND EXISTS (SELECT 1 FROM detent_execution WHERE job_id = NEW.job_id AND committed_at IS NOT NULL))
BEGIN
  SELECT RAISE(ABORT, 'DT041 execution is append-only: REPLACE refused');
END;

CREATE TRIGGER detent_event_keep BEFORE UPDATE ON detent_event
BEGIN
  SELECT RAISE(ABORT, 'DT041 event is append-only: UPDATE refused');
END;

CREATE TRIGGER detent_event_goes BEFORE DELETE ON detent_event WHEN (NOT EXISTS (SELECT 1 FROM detent_job WHERE id = OLD.job_id)) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT041 event is append-only: DELETE refused');
END;

CREATE TRIGGER detent_event_begins BEFORE INSERT ON detent_event
  WHEN EXISTS (SELECT 1 FROM detent_event WHERE job_id = NEW.job_id AND seq = NEW.seq)
    OR EXISTS (SELECT 1 FROM detent_event WHERE job_id = NEW.job_id AND key IS NOT NULL AND key = NEW.key)
BEGIN
  SELECT RAISE(ABORT, 'DT041 event is append-only: REPLACE refused');
END;

CREATE TRIGGER detent_transition_log_keep BEFORE UPDATE ON detent_transition_log
BEGIN
  SELECT RAISE(ABORT, 'DT041 transition_log is append-only: UPDATE refused');
END;

CREATE TRIGGER detent_transition_log_begins BEFORE INSERT ON detent_transition_log
  WHEN NEW.n IS NOT NULL AND EXISTS (SELECT 1 FROM detent_transition_log WHERE n = NEW.n)
BEGIN
  SELECT RAISE(ABORT, 'DT041 transition_log is append-only: REPLACE refused');
END;

CREATE TRIGGER detent_horizon_keep BEFORE UPDATE ON detent_horizon
BEGIN
  SELECT RAISE(ABORT, 'DT041 horizon is append-only: UPDATE refused');
END;

CREATE TRIGGER detent_horizon_begins BEFORE INSERT ON detent_horizon
  WHEN EXISTS (SELECT 1 FROM detent_horizon WHERE n = NEW.n)
BEGIN
  SELECT RAISE(ABORT, 'DT041 horizon is append-only: REPLACE refused');
END;

CREATE TRIGGER detent_migration_keep BEFORE UPDATE ON detent_migration
BEGIN
  SELECT RAISE(ABORT, 'DT041 migration is append-only: UPDATE refused');
END;

CREATE TRIGGER detent_migration_goes BEFORE DELETE ON detent_migration WHEN (FALSE) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT041 migration is append-only: DELETE refused');
END;

CREATE TRIGGER detent_migration_begins BEFORE INSERT ON detent_migration
  WHEN EXISTS (SELECT 1 FROM detent_migration WHERE version = NEW.version)
BEGIN
  SELECT RAISE(ABORT, 'DT041 migration is append-only: REPLACE refused');
END;

CREATE TRIGGER detent_identity_keep BEFORE UPDATE ON detent_identity
BEGIN
  SELECT RAISE(ABORT, 'DT041 identity is append-only: UPDATE refused');
END;

CREATE TRIGGER detent_identity_goes BEFORE DELETE ON detent_identity
BEGIN
  SELECT RAISE(ABORT, 'DT041 identity is append-only: DELETE refused');
END;

CREATE TRIGGER detent_identity_begins BEFORE INSERT ON detent_identity
  WHEN EXISTS (SELECT 1 FROM detent_identity WHERE n >= NEW.n OR first_id >= NEW.first_id)
BEGIN
  SELECT RAISE(ABORT, 'DT041 identity: numbers and first ids only grow');
END;

CREATE TRIGGER detent_transition_log_goes BEFORE DELETE ON detent_transition_log WHEN (
    CASE WHEN OLD.job_id IS NOT NULL THEN NOT EXISTS (SELECT 1 FROM detent_job WHERE id = OLD.job_id)
         ELSE OLD.at < (SELECT max(before) FROM detent_horizon)
          AND CASE OLD.entity
                WHEN 'batch_run' THEN NOT EXISTS (SELECT 1 FROM detent_batch_run WHERE id = CAST(OLD.entity_id AS INTEGER))
                WHEN 'pipeline_run' THEN NOT EXISTS (SELECT 1 FROM detent_pipeline_run WHERE id = CAST(OLD.entity_id AS INTEGER))
                ELSE EXISTS (SELECT 1 FROM detent_transition_log l
                              WHERE l.job_id IS NULL AND l.entity = OLD.entity AND l.entity_id = OLD.entity_id
                                AND l.n > OLD.n AND l.at < (SELECT max(before) FROM detent_horizon))
              END
    END) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT041 transition_log is append-only: DELETE refused');
END;

CREATE TRIGGER detent_horizon_goes BEFORE DELETE ON detent_horizon WHEN (
    OLD.before < (SELECT max(before) FROM detent_horizon) AND OLD.at < (SELECT max(before) FROM detent_horizon)
  ) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT041 horizon is append-only: DELETE refused');
END;
