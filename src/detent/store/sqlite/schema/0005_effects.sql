-- Effects outside the record: whose word counts on whether one has happened.
--
-- effect_told_by   set before an attempt acts where a crash would leave nobody knowing. `probe`: the task's own probe can
--                  find out afterwards. `marker`: the effect is committed in another database, together with a marker
--                  there. NULL: no attempt has acted in such a way

ALTER TABLE detent_job ADD COLUMN effect_told_by TEXT
  CONSTRAINT job_effect_told_by_known CHECK (effect_told_by = 'probe' OR effect_told_by = 'marker');

CREATE TRIGGER detent_job_effect BEFORE UPDATE OF effect_told_by ON detent_job
WHEN NEW.effect_told_by IS NOT OLD.effect_told_by
  AND (NEW.effect_told_by IS NULL OR OLD.state <> 'running' OR NEW.state <> 'running' OR NEW.started_at IS NULL)
BEGIN
  SELECT RAISE(ABORT, 'DT041 effect_told_by of a job is set by the attempt that is in progress, and stays');
END;
