-- Limits by key, pauses by hand, schedules with all that their tasks say, and failures that nobody was told of yet.
--
-- lane.limit_key         what its jobs are limited by together; empty where that is their task's own limit. So a key that
--                        has no room costs a claim one lane, however many jobs stand in it
-- rate_limit.template    the limit whose bounds it has: that of the task whose jobs have this key. NULL: its own
-- rate_limit.held_at     paused by a person, until a person ends it
-- untold                 jobs that the reaper gave up, until a worker that knows their task has told its application

ALTER TABLE detent.lane ADD COLUMN limit_key text NOT NULL DEFAULT '';
ALTER TABLE detent.lane DROP CONSTRAINT lane_of_one_rank;
ALTER TABLE detent.lane ADD CONSTRAINT lane_of_one_rank UNIQUE (queue, task, tenant, priority, limit_key);

ALTER TABLE detent.rate_limit ADD COLUMN template text;
ALTER TABLE detent.rate_limit ADD COLUMN held_at timestamptz;
CREATE INDEX rate_limit_of_template ON detent.rate_limit (template) WHERE template IS NOT NULL;

ALTER TABLE detent.schedule ADD COLUMN unique_pending boolean NOT NULL DEFAULT false;
ALTER TABLE detent.schedule ADD COLUMN limit_key text;

CREATE TABLE detent.untold (
  job_id      bigint NOT NULL,
  task        text   NOT NULL,
  taken_until timestamptz,
  CONSTRAINT untold_pkey PRIMARY KEY (job_id)
);

-- Their words change with this step; the functions of this version follow.
DROP FUNCTION IF EXISTS detent.lane_of(text, text, text, smallint);
DROP FUNCTION IF EXISTS detent.lanes_make_v1(text[], text[], text[], smallint[]);
DROP FUNCTION IF EXISTS detent.limit_list_v1();
DROP FUNCTION IF EXISTS detent.limit_throttled(text, double precision, timestamptz);
DROP FUNCTION IF EXISTS detent.schedule_put_v1(text, text, text, text, text, text, text, text, smallint, integer, boolean, boolean, timestamptz);
