-- Guards of ops runs.

CREATE TRIGGER detent_ops_run_keep BEFORE UPDATE ON detent_ops_run
  FOR EACH ROW WHEN OLD.finish_metadata IS NOT NULL OR NEW.job_id <> OLD.job_id OR NEW.environment_id <> OLD.environment_id
    OR NEW.git_sha IS NOT OLD.git_sha OR NEW.git_ref IS NOT OLD.git_ref OR NEW.key IS NOT OLD.key
BEGIN
  SELECT RAISE(ABORT, 'DT041 ops_run is written once: UPDATE refused');
END;

CREATE TRIGGER detent_ops_run_goes BEFORE DELETE ON detent_ops_run
  FOR EACH ROW WHEN EXISTS (SELECT 1 FROM detent_job WHERE id = OLD.job_id)
BEGIN
  SELECT RAISE(ABORT, 'DT041 ops_run is written once: DELETE refused');
END;

-- differs: REPLACE would delete the old row without firing guards, so an existing id is refused before.
CREATE TRIGGER detent_ops_run_begins BEFORE INSERT ON detent_ops_run
  FOR EACH ROW WHEN EXISTS (SELECT 1 FROM detent_ops_run WHERE job_id = NEW.job_id)
BEGIN
  SELECT RAISE(ABORT, 'DT041 ops_run is written once: REPLACE refused');
END;

CREATE TRIGGER detent_ops_environment_keep BEFORE UPDATE ON detent_ops_environment
BEGIN
  SELECT RAISE(ABORT, 'DT041 ops_environment is written once: UPDATE refused');
END;

CREATE TRIGGER detent_ops_environment_goes BEFORE DELETE ON detent_ops_environment
BEGIN
  SELECT RAISE(ABORT, 'DT041 ops_environment is written once: DELETE refused');
END;

CREATE TRIGGER detent_ops_environment_begins BEFORE INSERT ON detent_ops_environment
  FOR EACH ROW WHEN EXISTS (SELECT 1 FROM detent_ops_environment
    WHERE id = NEW.id OR (project_id = NEW.project_id AND name = NEW.name))
BEGIN
  SELECT RAISE(ABORT, 'DT041 ops_environment is written once: REPLACE refused');
END;

-- Only moves of the lifecycle ops_run are allowed. If there are targets of outgoing webhooks, a run that ends is put on the list
-- of ends that they have to be told of.
CREATE TRIGGER detent_job_ops_run AFTER UPDATE OF state, started_at ON detent_job
  FOR EACH ROW WHEN NEW.task = 'ops.run' AND NEW.state <> OLD.state
BEGIN
  SELECT RAISE(ABORT, 'DT002 ops_run: it cannot go from its state to that one') WHERE (
      (SELECT trigger FROM detent_transition_log WHERE job_id = OLD.id ORDER BY n DESC LIMIT 1) = 'repair'
   OR (CASE OLD.state WHEN 'pending' THEN 'queued' WHEN 'succeeded' THEN 'success'
          WHEN 'running' THEN CASE WHEN OLD.started_at IS NULL THEN 'claimed' ELSE 'running' END ELSE OLD.state END,
       CASE NEW.state WHEN 'pending' THEN 'queued' WHEN 'succeeded' THEN 'success'
          WHEN 'running' THEN CASE WHEN NEW.started_at IS NULL THEN 'claimed' ELSE 'running' END ELSE NEW.state END) IN (VALUES {{ops_run.moves}})
  ) IS NOT TRUE;
  INSERT INTO detent_failure_report (job_id, attempt, task)
    SELECT NEW.id, NEW.attempt, NEW.task WHERE NEW.finished_at IS NOT NULL AND EXISTS (SELECT 1 FROM detent_webhook_target)
      ON CONFLICT (job_id, attempt) DO NOTHING;
END;
