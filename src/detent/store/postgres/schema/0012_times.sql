-- What tasks say of themselves, and results that are kept for a time only.
--
-- task_times             after how many seconds a job of the task counts as stale or stalled, where it is not as its queue
--                        says; for how many its result is kept. NULL: as everywhere. Written by whoever runs the task
-- job.result_dropped_at  when its result was dropped, though the job stays: its task's time for it was over. That is the one
--                        thing that may happen to a job that has succeeded, and it happens once

CREATE TABLE detent.task_times (
  task          text             NOT NULL,
  stale_after   double precision,
  stalled_after double precision,
  result_ttl    double precision,
  CONSTRAINT task_times_pkey PRIMARY KEY (task),
  CONSTRAINT task_times_say_something CHECK (stale_after > 0 OR stalled_after > 0 OR result_ttl > 0)
);

ALTER TABLE detent.job ADD COLUMN result_dropped_at timestamptz;
ALTER TABLE detent.job ADD CONSTRAINT job_dropped_result_is_gone CHECK (result_dropped_at IS NULL OR (result IS NULL AND state = 'succeeded'));

CREATE FUNCTION detent.result_guard() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF OLD.result_dropped_at IS NULL AND OLD.result IS NOT NULL AND EXISTS (
      SELECT 1 FROM detent.task_times s
       WHERE s.task = OLD.task AND NEW.result_dropped_at >= OLD.finished_at + make_interval(secs => s.result_ttl)) THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'DT041 job %: a result is dropped once, when the time that its task says is over', OLD.id
    USING ERRCODE = 'DT041';
END $$;

CREATE TRIGGER job_result BEFORE UPDATE OF result_dropped_at ON detent.job
  FOR EACH ROW WHEN (NEW.result_dropped_at IS DISTINCT FROM OLD.result_dropped_at)
  EXECUTE FUNCTION detent.result_guard();
