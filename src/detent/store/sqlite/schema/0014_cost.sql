-- Jobs that cost a limit more than one token.
--
-- job.cost         how many tokens it takes from the limit of its task when it begins; NULL: one
-- schedule.cost    the same, for the jobs that it makes
-- limit_slot.cost  how many the attempt has taken so far: at first what its job costs, later what its function says that it
--                  has cost in all. A bucket that was taken from beyond what it held is below zero until it has made up

ALTER TABLE detent_job ADD COLUMN cost INTEGER CONSTRAINT job_cost_is_possible CHECK (cost >= 1);

ALTER TABLE detent_schedule ADD COLUMN cost INTEGER;

ALTER TABLE detent_limit_slot ADD COLUMN cost REAL NOT NULL DEFAULT 1
  CONSTRAINT limit_slot_cost_is_possible CHECK (cost >= 0);
