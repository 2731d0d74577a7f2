-- What follows from a move of a job: counts, and the lists of unsuccessful jobs.

CREATE TRIGGER detent_job_counted AFTER UPDATE OF finished_at ON detent_job
  WHEN (NEW.finished_at IS NOT NULL OR OLD.finished_at IS NOT NULL) AND NEW.state <> OLD.state
    AND NOT (NEW.state = 'succeeded' AND OLD.state = 'running')
BEGIN
  INSERT INTO detent_finished_delta (tenant, queue, task, state, jobs)
    SELECT OLD.tenant, OLD.queue, OLD.task, OLD.state, -1 WHERE OLD.finished_at IS NOT NULL
    UNION ALL
    SELECT NEW.tenant, NEW.queue, NEW.task, NEW.state, 1 WHERE NEW.finished_at IS NOT NULL;
  DELETE FROM detent_unsuccessful WHERE state = OLD.state AND job_id = OLD.id;
  INSERT INTO detent_unsuccessful (state, job_id) SELECT NEW.state, NEW.id
   WHERE NEW.state IN ('failed', 'cancelled') AND NOT EXISTS (
     SELECT 1 FROM detent_unsuccessful WHERE state = NEW.state AND job_id = NEW.id);
END;
