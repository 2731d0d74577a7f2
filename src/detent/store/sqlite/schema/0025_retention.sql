-- oldest code: 17
-- Retention of what belongs to no job: lines of the log and old horizons may go, by rules that the database enforces.
--
-- A line without a job may go if it is below the newest horizon and nobody needs it: a newer line of the same entity is below
-- the horizon too, or the run it tells of is gone. A horizon may go if it is below the newest one and was recorded before it.
-- The index makes the newest horizon one step for every guard that asks for it.

CREATE INDEX detent_horizon_before ON detent_horizon (before);

DROP TRIGGER detent_transition_log_goes;
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

DROP TRIGGER detent_horizon_goes;
CREATE TRIGGER detent_horizon_goes BEFORE DELETE ON detent_horizon WHEN (
    OLD.before < (SELECT max(before) FROM detent_horizon) AND OLD.at < (SELECT max(before) FROM detent_horizon)
  ) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT041 horizon is append-only: DELETE refused');
END;
