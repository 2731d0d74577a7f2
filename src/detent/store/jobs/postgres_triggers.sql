-- What follows from a move of a job: counts, and the lists of unsuccessful jobs.

CREATE OR REPLACE FUNCTION detent.job_counted() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  INSERT INTO detent.finished_delta (tenant, queue, task, state, jobs)
    SELECT u.tenant, u.queue, u.task, u.state, u.jobs
      FROM (VALUES (OLD.tenant, OLD.queue, OLD.task, OLD.state, -1, OLD.finished_at),
                   (NEW.tenant, NEW.queue, NEW.task, NEW.state, 1, NEW.finished_at)) u (tenant, queue, task, state, jobs, at)
     WHERE u.at IS NOT NULL;
  IF OLD.state IN ('failed', 'cancelled') THEN
    DELETE FROM detent.unsuccessful WHERE state = OLD.state AND job_id = OLD.id;
  END IF;
  IF NEW.state IN ('failed', 'cancelled') THEN
    INSERT INTO detent.unsuccessful (state, job_id) VALUES (NEW.state, NEW.id) ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER job_counted AFTER UPDATE OF finished_at ON detent.job
  FOR EACH ROW WHEN ((NEW.finished_at IS NOT NULL OR OLD.finished_at IS NOT NULL) AND NEW.state <> OLD.state
    AND NOT (NEW.state = 'succeeded' AND OLD.state = 'running'))
  EXECUTE FUNCTION detent.job_counted();
