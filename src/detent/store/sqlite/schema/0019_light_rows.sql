-- oldest code: 17
-- What is left of the triggers that ask before a job's row changes.
--
-- While one of them asks before an UPDATE, SQLite reads the row anew after it. On PostgreSQL CHECKs say the same with fewer
-- words from here on; SQLite reads them once for each connection.
-- `detent verify` and `detent repair` of an older Detent take these for missing: use those of this one.

DROP TRIGGER detent_job_effect;
CREATE TRIGGER detent_job_effect AFTER UPDATE OF effect_told_by ON detent_job
WHEN NEW.effect_told_by IS NOT OLD.effect_told_by
  AND (NEW.effect_told_by IS NULL OR OLD.state <> 'running' OR NEW.state <> 'running' OR NEW.started_at IS NULL)
BEGIN
  SELECT RAISE(ABORT, 'DT041 effect_told_by of a job is set by the attempt that is in progress, and stays');
END;

DROP TRIGGER detent_job_ops_run;
CREATE TRIGGER detent_job_ops_run AFTER UPDATE OF state, started_at ON detent_job
  FOR EACH ROW WHEN NEW.task = 'ops.run' AND NEW.state <> OLD.state AND (
      (OLD.state = 'pending' AND NEW.state IN ('running', 'cancelled'))
   OR (OLD.state = 'running' AND NEW.state = 'cancelled')
   OR (OLD.state = 'running' AND OLD.started_at IS NOT NULL AND NEW.state IN ('succeeded', 'failed'))
   OR (SELECT trigger FROM detent_transition_log WHERE job_id = OLD.id ORDER BY n DESC LIMIT 1) = 'repair'
  ) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT002 ops_run: it cannot go from its state to that one');
END;

DROP TRIGGER detent_job_result;
CREATE TRIGGER detent_job_result AFTER UPDATE OF result_dropped_at ON detent_job
WHEN NEW.result_dropped_at IS NOT OLD.result_dropped_at
  AND (OLD.result_dropped_at IS NULL AND OLD.result IS NOT NULL AND EXISTS (
    SELECT 1 FROM detent_task_times s
     WHERE s.task = OLD.task AND NEW.result_dropped_at >= OLD.finished_at + s.result_ttl * 1000000)) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT041 job: a result is dropped once, when the time that its task says is over');
END;
