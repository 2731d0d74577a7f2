-- Lanes of one queue and task have numbers in one range, so a claim finds the next lane with ready jobs in one step.
--
-- lane_group   a queue and a task. The number of a lane is that of its group times 2^32, and a number of its own
--
-- A claim steps from one lane that has ready jobs to the next, within the ranges of its groups. So lanes without ready jobs, and
-- lanes of other tasks and of paused queues, cost it nothing, however many there are. The index leads to all lanes of a tenant.

CREATE TABLE detent_lane_group (
  id    INTEGER NOT NULL,
  queue TEXT    NOT NULL,
  task  TEXT    NOT NULL,
  CONSTRAINT lane_group_pkey PRIMARY KEY (id),
  CONSTRAINT lane_group_of_one_kind UNIQUE (queue, task)
) STRICT;
INSERT INTO detent_lane_group (queue, task) SELECT DISTINCT queue, task FROM detent_lane ORDER BY queue, task;

UPDATE detent_ready SET lane_id = (g.id << 32) + l.id
  FROM detent_lane l JOIN detent_lane_group g ON g.queue = l.queue AND g.task = l.task WHERE l.id = detent_ready.lane_id;
UPDATE detent_waiting SET lane_id = (g.id << 32) + l.id
  FROM detent_lane l JOIN detent_lane_group g ON g.queue = l.queue AND g.task = l.task WHERE l.id = detent_waiting.lane_id;
UPDATE detent_lane SET id = (g.id << 32) + detent_lane.id
  FROM detent_lane_group g WHERE g.queue = detent_lane.queue AND g.task = detent_lane.task;

CREATE INDEX detent_lane_of_tenant ON detent_lane (tenant, priority DESC, id);
