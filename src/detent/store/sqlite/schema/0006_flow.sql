-- Limits by key, pauses by hand, schedules with all that their tasks say, and failures that nobody was told of yet.
--
-- lane.limit_key         what its jobs are limited by together; empty where that is their task's own limit. So a key that
--                        has no room costs a claim one lane, however many jobs stand in it
-- rate_limit.template    the limit whose bounds it has: that of the task whose jobs have this key. NULL: its own
-- rate_limit.held_at     paused by a person, until a person ends it
-- untold                 jobs that the reaper gave up, until a worker that knows their task has told its application

CREATE TABLE detent_lane_with_key (
  id        INTEGER NOT NULL,
  queue     TEXT    NOT NULL,
  task      TEXT    NOT NULL,
  tenant    TEXT    NOT NULL,
  priority  INTEGER NOT NULL,
  limit_key TEXT    NOT NULL DEFAULT '',
  CONSTRAINT lane_pkey PRIMARY KEY (id),
  CONSTRAINT lane_of_one_rank UNIQUE (queue, task, tenant, priority, limit_key)
) STRICT;
INSERT INTO detent_lane_with_key (id, queue, task, tenant, priority) SELECT id, queue, task, tenant, priority FROM detent_lane;
DROP TABLE detent_lane;
ALTER TABLE detent_lane_with_key RENAME TO detent_lane;

ALTER TABLE detent_rate_limit ADD COLUMN template TEXT;
ALTER TABLE detent_rate_limit ADD COLUMN held_at INTEGER;
CREATE INDEX detent_rate_limit_of_template ON detent_rate_limit (template) WHERE template IS NOT NULL;

ALTER TABLE detent_schedule ADD COLUMN unique_pending INTEGER NOT NULL DEFAULT 0;
ALTER TABLE detent_schedule ADD COLUMN limit_key TEXT;

CREATE TABLE detent_untold (
  job_id      INTEGER NOT NULL,
  task        TEXT    NOT NULL,
  taken_until INTEGER,
  CONSTRAINT untold_pkey PRIMARY KEY (job_id)
) STRICT;
