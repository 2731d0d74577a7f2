-- Jobs that cost a limit more than one token.
--
-- job.cost         how many tokens it takes from the limit of its task when it begins; NULL: one
-- schedule.cost    the same, for the jobs that it makes
-- limit_slot.cost  how many the attempt has taken so far: at first what its job costs, later what its function says that it
--                  has cost in all. A bucket that was taken from beyond what it held is below zero until it has made up

ALTER TABLE detent.job ADD COLUMN cost integer;
ALTER TABLE detent.job ADD CONSTRAINT job_cost_is_possible CHECK (cost >= 1);

ALTER TABLE detent.schedule ADD COLUMN cost integer;

ALTER TABLE detent.limit_slot ADD COLUMN cost double precision NOT NULL DEFAULT 1;
ALTER TABLE detent.limit_slot ADD CONSTRAINT limit_slot_cost_is_possible CHECK (cost >= 0);

-- Their words change with this step; the functions of this version follow.
DROP FUNCTION IF EXISTS detent.job_commit_v1(bigint, integer, text, text, bigint[], bigint[], text[], text[], text[], text[], smallint[], integer[], boolean[], boolean[], boolean[], timestamptz[], timestamptz[], text[], text[], text[], bigint[], text[], text[], text[], double precision[], bigint[]);
DROP FUNCTION IF EXISTS detent.job_enqueue_v1(bigint[], bigint[], text[], text[], text[], text[], smallint[], integer[], boolean[], boolean[], boolean[], timestamptz[], timestamptz[], text[], text[], text[], bigint[], text[], text[], text[], double precision[], bigint[], boolean);
DROP FUNCTION IF EXISTS detent.jobs_insert(timestamptz, integer[], bigint[], bigint[], text[], text[], text[], text[], smallint[], integer[], boolean[], boolean[], boolean[], timestamptz[], timestamptz[], text[], text[], text[], bigint[], text[]);
DROP FUNCTION IF EXISTS detent.claim_choose(integer[], text[], smallint[], integer[], integer[], integer[], integer, text, timestamptz);
DROP FUNCTION IF EXISTS detent.limit_spend(text, bigint[], timestamptz);
DROP FUNCTION IF EXISTS detent.schedule_put_v1(text, text, text, text, text, text, text, text, smallint, integer, boolean, boolean, boolean, text, timestamptz);
