-- Every failure is on the list `untold` until its application heard of it, whoever ended the attempt.
--
-- attempt: a job that fails, is retried and fails again has two failures, and a hook may still run for the first.
-- The index leads to the failures of the tasks that a worker knows, however many there are of other tasks.

CREATE TABLE detent_untold_with_attempt (
  job_id      INTEGER NOT NULL,
  task        TEXT    NOT NULL,
  taken_until INTEGER,
  attempt     INTEGER NOT NULL,
  CONSTRAINT untold_pkey PRIMARY KEY (job_id, attempt)
) STRICT;
INSERT INTO detent_untold_with_attempt (job_id, task, taken_until, attempt)
  SELECT u.job_id, u.task, u.taken_until, j.attempt FROM detent_untold u JOIN detent_job j ON j.id = u.job_id;
DROP TABLE detent_untold;
ALTER TABLE detent_untold_with_attempt RENAME TO detent_untold;
CREATE INDEX detent_untold_of_task ON detent_untold (task, job_id, attempt);
