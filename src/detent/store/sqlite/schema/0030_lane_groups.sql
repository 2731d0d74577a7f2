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

-- The jobs of a pipeline run that a trigger enqueues have their lanes in groups too.
DROP TRIGGER detent_pipeline_enqueues;
CREATE TRIGGER detent_pipeline_enqueues AFTER UPDATE OF state ON detent_pipeline_run
  FOR EACH ROW WHEN NEW.state IS NOT OLD.state
    AND (NEW.state = 'consolidation_triggered' OR NEW.state = 'consolidation_skipped'
         OR (NEW.state = 'failed' AND OLD.state <> 'consolidation_skipped'))
BEGIN
  INSERT INTO detent_lane_group (queue, task)
    SELECT NEW.queue, 'detent.pipeline.' || CASE NEW.state WHEN 'consolidation_skipped' THEN 'skipped/' WHEN 'failed' THEN 'failed/' ELSE 'consolidate/' END || NEW.name
     WHERE NOT EXISTS (
       SELECT 1 FROM detent_lane_group
        WHERE queue = NEW.queue
          AND task = 'detent.pipeline.' || CASE NEW.state WHEN 'consolidation_skipped' THEN 'skipped/' WHEN 'failed' THEN 'failed/' ELSE 'consolidate/' END || NEW.name);
  INSERT INTO detent_lane (id, queue, task, tenant, priority, limit_key)
    SELECT coalesce((SELECT max(l.id) FROM detent_lane l WHERE l.id > (g.id << 32) AND l.id < ((g.id + 1) << 32)), g.id << 32) + 1,
           g.queue, g.task, NEW.tenant, NEW.priority, ''
      FROM detent_lane_group g
     WHERE g.queue = NEW.queue
       AND g.task = 'detent.pipeline.' || CASE NEW.state WHEN 'consolidation_skipped' THEN 'skipped/' WHEN 'failed' THEN 'failed/' ELSE 'consolidate/' END || NEW.name
       AND NOT EXISTS (
         SELECT 1 FROM detent_lane
          WHERE queue = g.queue AND task = g.task AND tenant = NEW.tenant AND priority = NEW.priority AND limit_key = '');
  UPDATE detent_ids SET next = next + NEW.replicas;
  INSERT INTO detent_job (id, tenant, task, queue, priority, due_at, payload, run_id, nonce, created_at, attempts_max,
      dead_letter, idempotent)
    SELECT (SELECT next FROM detent_ids) - each.value, NEW.tenant,
           'detent.pipeline.' || CASE NEW.state WHEN 'consolidation_skipped' THEN 'skipped/' WHEN 'failed' THEN 'failed/' ELSE 'consolidate/' END || NEW.name,
           NEW.queue, NEW.priority, NEW.moved_at, '{"run_id":' || NEW.id || '}', NEW.id, abs(random() / 2), NEW.moved_at,
           1000000, 0, 1
      FROM json_each('[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]') each
     WHERE each.value = 1
        OR (NEW.state = 'consolidation_triggered' AND each.value <= NEW.replicas
            AND (each.value - 1) * NEW.portion_size < (SELECT sum(p.staged) FROM detent_partition p WHERE p.run_id = NEW.id));
  INSERT INTO detent_ready (lane_id, ready_at, job_id, holds_key)
    SELECT l.id, j.due_at, j.id, 0
      FROM detent_job j
      JOIN detent_lane l ON l.queue = j.queue AND l.task = j.task AND l.tenant = j.tenant AND l.priority = j.priority
                        AND l.limit_key = ''
     WHERE j.id >= (SELECT next FROM detent_ids) - NEW.replicas AND j.id < (SELECT next FROM detent_ids)
       AND j.run_id = NEW.id;
END;
