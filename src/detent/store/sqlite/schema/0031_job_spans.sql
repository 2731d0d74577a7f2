-- Jobs by their time of creation, without an index on every job; and those that failed or were cancelled, however few they are.
--
-- job_span       the jobs of one time of creation that share all but the last ten bits of their numbers: from the first to the last
-- unsuccessful   the jobs that are failed or cancelled (dead jobs have their own table)
--
-- All jobs of one call are created at one time and have numbers in a row, so a thousand of them need one or two spans, where
-- an index had a thousand entries. In the order of the key, and within a span by number, jobs are in the order of creation.
-- Two calls at one microsecond have a span each, so that on PostgreSQL none waits for the other's transaction. Their spans may
-- overlap.

CREATE TABLE detent_job_span (
  created_at INTEGER NOT NULL,
  block      INTEGER NOT NULL,
  first_id   INTEGER NOT NULL,
  last_id    INTEGER NOT NULL,
  CONSTRAINT job_span_pkey PRIMARY KEY (created_at, block, first_id),
  CONSTRAINT job_span_is_within_its_block CHECK (first_id <= last_id AND first_id >> 10 = block AND last_id >> 10 = block)
) STRICT, WITHOUT ROWID;

INSERT INTO detent_job_span (created_at, block, first_id, last_id)
  SELECT created_at, id >> 10, min(id), max(id) FROM detent_job GROUP BY created_at, id >> 10;

DROP INDEX detent_job_by_time;

CREATE TABLE detent_unsuccessful (
  state  TEXT    NOT NULL,
  job_id INTEGER NOT NULL,
  CONSTRAINT unsuccessful_pkey PRIMARY KEY (state, job_id)
) STRICT, WITHOUT ROWID;
INSERT INTO detent_unsuccessful (state, job_id) SELECT state, id FROM detent_job WHERE state IN ('failed', 'cancelled');

DROP TRIGGER detent_job_counted;
CREATE TRIGGER detent_job_counted AFTER UPDATE OF finished_at ON detent_job
  WHEN (NEW.finished_at IS NOT NULL OR OLD.finished_at IS NOT NULL) AND NEW.state <> OLD.state
    AND NOT (NEW.state = 'succeeded' AND OLD.state = 'running')
BEGIN
  INSERT INTO detent_finished_delta (tenant, queue, task, state, jobs)
    SELECT OLD.tenant, OLD.queue, OLD.task, OLD.state, -1 WHERE OLD.finished_at IS NOT NULL
    UNION ALL
    SELECT NEW.tenant, NEW.queue, NEW.task, NEW.state, 1 WHERE NEW.finished_at IS NOT NULL;
  DELETE FROM detent_unsuccessful WHERE state = OLD.state AND job_id = OLD.id;
  INSERT INTO detent_unsuccessful (state, job_id) SELECT NEW.state, NEW.id
   WHERE NEW.state IN ('failed', 'cancelled') AND NOT EXISTS (
     SELECT 1 FROM detent_unsuccessful WHERE state = NEW.state AND job_id = NEW.id);
END;

-- The jobs of a pipeline run that a trigger enqueues have their span too.
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
  INSERT INTO detent_job_span (created_at, block, first_id, last_id)
    SELECT created_at, id >> 10, min(id), max(id) FROM detent_job
     WHERE id >= (SELECT next FROM detent_ids) - NEW.replicas AND id < (SELECT next FROM detent_ids) AND run_id = NEW.id
     GROUP BY created_at, id >> 10;
END;
