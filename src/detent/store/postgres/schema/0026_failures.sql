-- Every failure is on the list `untold` until its application heard of it, whoever ended the attempt.
--
-- attempt: a job that fails, is retried and fails again has two failures, and a hook may still run for the first.
-- The index leads to the failures of the tasks that a worker knows, however many there are of other tasks.

ALTER TABLE detent.untold ADD COLUMN attempt integer;
UPDATE detent.untold u SET attempt = j.attempt FROM detent.job j WHERE j.id = u.job_id;
DELETE FROM detent.untold WHERE attempt IS NULL;
ALTER TABLE detent.untold ALTER COLUMN attempt SET NOT NULL;
ALTER TABLE detent.untold DROP CONSTRAINT untold_pkey;
ALTER TABLE detent.untold ADD CONSTRAINT untold_pkey PRIMARY KEY (job_id, attempt);
CREATE INDEX untold_of_task ON detent.untold (task, job_id, attempt);

DROP FUNCTION IF EXISTS detent.untold_take_v1(text[], integer, double precision);
DROP FUNCTION IF EXISTS detent.untold_done_v1(bigint[]);
