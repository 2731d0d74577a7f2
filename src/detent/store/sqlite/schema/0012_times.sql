-- What tasks say of themselves, and results that are kept for a time only.
--
-- task_times             after how many seconds a job of the task counts as stale or stalled, where it is not as its queue
--                        says; for how many its result is kept. NULL: as everywhere. Written by whoever runs the task
-- job.result_dropped_at  when its result was dropped, though the job stays: its task's time for it was over. That is the one
--                        thing that may happen to a job that has succeeded, and it happens once

CREATE TABLE detent_task_times (
  task          TEXT NOT NULL,
  stale_after   REAL,
  stalled_after REAL,
  result_ttl    REAL,
  CONSTRAINT task_times_pkey PRIMARY KEY (task),
  CONSTRAINT task_times_say_something CHECK (stale_after > 0 OR stalled_after > 0 OR result_ttl > 0)
) STRICT, WITHOUT ROWID;

ALTER TABLE detent_job ADD COLUMN result_dropped_at INTEGER
  CONSTRAINT job_dropped_result_is_gone CHECK (result_dropped_at IS NULL OR (result IS NULL AND state = 'succeeded'));

CREATE TRIGGER detent_job_result BEFORE UPDATE OF result_dropped_at ON detent_job
WHEN NEW.result_dropped_at IS NOT OLD.result_dropped_at
  AND (OLD.result_dropped_at IS NULL AND OLD.result IS NOT NULL AND EXISTS (
    SELECT 1 FROM detent_task_times s
     WHERE s.task = OLD.task AND NEW.result_dropped_at >= OLD.finished_at + s.result_ttl * 1000000)) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT041 job: a result is dropped once, when the time that its task says is over');
END;
