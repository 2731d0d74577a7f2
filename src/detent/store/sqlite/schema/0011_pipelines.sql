-- Pipeline runs: fan out over partitions, stage their records page by page, fan in to one consolidation.
--
-- pipeline_run   one run: what it is for, its state, how many of its partitions have ended
-- partition      one part of a run: a job with an offset; its state follows from its job's
-- staged         the records of a run, one for each key, until they are consolidated
-- portion        some staged records in the order of their keys, consolidated in one transaction; held by a job
-- seen           the keys that a pipeline has consolidated and not retired: what is gone is known by them
-- watermark      up to when a source is known; it moves only with the run that completes
--
-- States move as `lifecycle/library.py` declares, whoever asks. What a job's end means for its partition, and the last
-- partition's end for the run, is decided by the triggers at the end, in the transaction that ends the job.
-- differs: times are whole microseconds, booleans 0 or 1, as everywhere in this file.

CREATE TABLE detent_pipeline_run (
  id               INTEGER NOT NULL,
  tenant           TEXT    NOT NULL DEFAULT '',
  name             TEXT    NOT NULL,
  payload          TEXT    NOT NULL,
  watermark        TEXT    NOT NULL,
  since            INTEGER,
  captured_at      INTEGER NOT NULL,
  is_full          INTEGER NOT NULL,
  is_forced        INTEGER NOT NULL DEFAULT 0,
  started_by       TEXT    NOT NULL,
  reason           TEXT,
  retires          INTEGER NOT NULL DEFAULT 0,
  queue            TEXT    NOT NULL,
  priority         INTEGER NOT NULL DEFAULT 0,
  replicas         INTEGER NOT NULL,
  portion_size     INTEGER NOT NULL,
  plan_job_id      INTEGER NOT NULL,
  state            TEXT    NOT NULL DEFAULT 'created',
  tolerated        INTEGER NOT NULL DEFAULT 0,
  partitions       INTEGER NOT NULL DEFAULT 0,
  parts_ended      INTEGER NOT NULL DEFAULT 0,
  parts_failed     INTEGER NOT NULL DEFAULT 0,
  portions         INTEGER NOT NULL DEFAULT 0,
  cut_key          TEXT    NOT NULL DEFAULT '',
  finisher_job_id  INTEGER,
  finisher_attempt INTEGER,
  finisher_tries   INTEGER NOT NULL DEFAULT 0,
  retired          INTEGER NOT NULL DEFAULT 0,
  error            TEXT,
  created_at       INTEGER NOT NULL,
  started_at       INTEGER,
  finished_at      INTEGER,
  moved_at         INTEGER NOT NULL,
  CONSTRAINT pipeline_run_pkey PRIMARY KEY (id),
  CONSTRAINT pipeline_run_state_known CHECK (state IN ('created', 'workers_running', 'consolidation_skipped', 'consolidation_triggered', 'consolidating', 'completed', 'failed')),
  CONSTRAINT pipeline_run_counts_fit CHECK (parts_failed BETWEEN 0 AND parts_ended AND parts_ended <= partitions),
  CONSTRAINT pipeline_run_finished_has_time CHECK ((state IN ('completed', 'failed')) = (finished_at IS NOT NULL)),
  CONSTRAINT pipeline_run_consolidates_when_all_ended CHECK (state IN ('created', 'workers_running', 'failed') OR parts_ended = partitions),
  CONSTRAINT pipeline_run_force_has_reason CHECK (NOT is_forced OR (reason IS NOT NULL AND reason <> '')),
  CONSTRAINT pipeline_run_bounds CHECK (replicas BETWEEN 1 AND 16 AND portion_size >= 1)
) STRICT;
CREATE UNIQUE INDEX detent_pipeline_run_one_active ON detent_pipeline_run (tenant, watermark) WHERE state NOT IN ('completed', 'failed');

CREATE TABLE detent_partition (
  run_id      INTEGER NOT NULL,
  n           INTEGER NOT NULL,
  key         TEXT    NOT NULL,
  payload     TEXT    NOT NULL,
  job_id      INTEGER NOT NULL,
  state       TEXT    NOT NULL DEFAULT 'pending',
  next_offset TEXT    NOT NULL DEFAULT '0',
  last_page   INTEGER NOT NULL DEFAULT 0,
  tries       INTEGER NOT NULL DEFAULT 0,
  pages       INTEGER NOT NULL DEFAULT 0,
  records     INTEGER NOT NULL DEFAULT 0,
  staged      INTEGER NOT NULL DEFAULT 0,
  error       TEXT,
  started_at  INTEGER,
  paged_at    INTEGER,
  ended_at    INTEGER,
  CONSTRAINT partition_pkey PRIMARY KEY (run_id, n),
  CONSTRAINT partition_one_per_key UNIQUE (run_id, key),
  CONSTRAINT partition_one_per_job UNIQUE (job_id),
  CONSTRAINT partition_state_known CHECK (state IN ('pending', 'in_progress', 'fetching_pages', 'completed', 'failed')),
  CONSTRAINT partition_completed_has_its_last_page CHECK (state <> 'completed' OR last_page),
  CONSTRAINT partition_pages_are_fetched CHECK (pages = 0 OR state IN ('fetching_pages', 'completed', 'failed')),
  CONSTRAINT partition_ended_has_time CHECK ((state IN ('completed', 'failed')) = (ended_at IS NOT NULL)),
  CONSTRAINT partition_staged_is_of_its_records CHECK (staged BETWEEN 0 AND records)
) STRICT;

CREATE TABLE detent_staged (
  run_id      INTEGER NOT NULL,
  key         TEXT    NOT NULL,
  data        TEXT    NOT NULL,
  partition_n INTEGER NOT NULL,
  CONSTRAINT staged_pkey PRIMARY KEY (run_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE detent_portion (
  run_id    INTEGER NOT NULL,
  n         INTEGER NOT NULL,
  first_key TEXT    NOT NULL,
  last_key  TEXT    NOT NULL,
  records   INTEGER NOT NULL,
  tries     INTEGER NOT NULL DEFAULT 0,
  job_id    INTEGER NOT NULL,
  attempt   INTEGER NOT NULL,
  done_at   INTEGER,
  CONSTRAINT portion_pkey PRIMARY KEY (run_id, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX detent_portion_open ON detent_portion (run_id, n) WHERE done_at IS NULL;

CREATE TABLE detent_seen (
  tenant    TEXT NOT NULL,
  watermark TEXT NOT NULL,
  key       TEXT NOT NULL,
  CONSTRAINT seen_pkey PRIMARY KEY (tenant, watermark, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE detent_watermark (
  tenant   TEXT    NOT NULL,
  name     TEXT    NOT NULL,
  value    INTEGER NOT NULL,
  run_id   INTEGER NOT NULL,
  moved_at INTEGER NOT NULL,
  CONSTRAINT watermark_pkey PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

-- A run with what its partitions and portions have come to, added up.
CREATE VIEW detent_pipeline_runs AS
  SELECT r.id, r.tenant, r.name, r.payload, r.watermark, r.since, r.captured_at, r.is_full, r.is_forced, r.started_by,
         r.reason, r.retires, r.state, r.tolerated, r.partitions, r.parts_ended, r.parts_failed,
         (SELECT coalesce(sum(p.pages), 0) FROM detent_partition p WHERE p.run_id = r.id) AS pages,
         (SELECT coalesce(sum(p.records), 0) FROM detent_partition p WHERE p.run_id = r.id) AS records,
         (SELECT coalesce(sum(p.staged), 0) FROM detent_partition p WHERE p.run_id = r.id) AS staged,
         (SELECT coalesce(sum(o.records), 0) FROM detent_portion o
           WHERE o.run_id = r.id AND o.done_at IS NOT NULL) AS consolidated,
         r.retired, r.error, r.created_at, r.started_at, r.finished_at, r.moved_at
    FROM detent_pipeline_run r;

-- The guards.

CREATE TRIGGER detent_pipeline_run_begins BEFORE INSERT ON detent_pipeline_run
  FOR EACH ROW WHEN NEW.state <> 'created' OR NEW.partitions <> 0 OR NEW.parts_ended <> 0
    OR EXISTS (SELECT 1 FROM detent_pipeline_run WHERE id = NEW.id)
BEGIN
  SELECT RAISE(ABORT, 'DT002 pipeline_run: it must begin once, in state created, without partitions');
END;

CREATE TRIGGER detent_pipeline_run_guard BEFORE UPDATE OF state ON detent_pipeline_run
  FOR EACH ROW WHEN OLD.state IS NOT NEW.state
BEGIN
  SELECT CASE
    WHEN (
      (OLD.state = 'created' AND NEW.state = 'workers_running')
      OR (OLD.state = 'workers_running' AND NEW.state = 'consolidation_triggered')
      OR (OLD.state = 'consolidation_triggered' AND NEW.state = 'consolidating')
      OR (OLD.state = 'consolidating' AND NEW.state = 'completed')
      OR (OLD.state = 'workers_running' AND NEW.state = 'consolidation_skipped')
      OR (OLD.state = 'consolidation_skipped' AND NEW.state = 'failed')
      OR (OLD.state = 'consolidating' AND NEW.state = 'failed')
      OR (OLD.state = 'consolidation_triggered' AND NEW.state = 'failed')
      OR (OLD.state = 'created' AND NEW.state = 'failed')
      OR (OLD.state = 'consolidation_skipped' AND NEW.state = 'consolidation_triggered')
    ) IS NOT TRUE THEN RAISE(ABORT, 'DT002 pipeline_run: it cannot go from its state to that one')
    WHEN EXISTS (
      SELECT 1 FROM (SELECT from_state, to_state FROM detent_transition_log
                      WHERE job_id IS NULL AND entity = 'pipeline_run' AND entity_id = CAST(OLD.id AS TEXT)
                      ORDER BY n DESC LIMIT 1) last
       WHERE last.from_state = OLD.state AND last.to_state = NEW.state)
      THEN NULL
    ELSE RAISE(ABORT, 'DT041 pipeline_run: it moves only together with its line in transition_log')
  END;
END;

CREATE TRIGGER detent_pipeline_run_frozen
  BEFORE UPDATE OF id, tenant, name, payload, watermark, since, captured_at, is_full, is_forced, plan_job_id, created_at
  ON detent_pipeline_run
  FOR EACH ROW WHEN NEW.id IS NOT OLD.id OR NEW.tenant IS NOT OLD.tenant OR NEW.name IS NOT OLD.name
    OR NEW.payload IS NOT OLD.payload OR NEW.watermark IS NOT OLD.watermark OR NEW.since IS NOT OLD.since
    OR NEW.captured_at IS NOT OLD.captured_at OR NEW.is_full IS NOT OLD.is_full OR NEW.is_forced IS NOT OLD.is_forced
    OR NEW.plan_job_id IS NOT OLD.plan_job_id OR NEW.created_at IS NOT OLD.created_at
BEGIN
  SELECT RAISE(ABORT, 'DT041 pipeline_run: what it was started for is written once');
END;

CREATE TRIGGER detent_pipeline_run_goes BEFORE DELETE ON detent_pipeline_run
  FOR EACH ROW WHEN OLD.state NOT IN ('completed', 'failed')
BEGIN
  SELECT RAISE(ABORT, 'DT041 pipeline_run: it has not ended');
END;

CREATE TRIGGER detent_partition_begins BEFORE INSERT ON detent_partition
  FOR EACH ROW WHEN NEW.state <> 'pending' OR NEW.pages <> 0 OR NEW.next_offset <> '0'
    OR EXISTS (SELECT 1 FROM detent_partition WHERE run_id = NEW.run_id AND (n = NEW.n OR key = NEW.key))
    OR EXISTS (SELECT 1 FROM detent_partition WHERE job_id = NEW.job_id)
BEGIN
  SELECT RAISE(ABORT, 'DT002 partition: it must begin once, in state pending, at the first page');
END;

CREATE TRIGGER detent_partition_guard BEFORE UPDATE OF state, next_offset, last_page, pages ON detent_partition
  FOR EACH ROW WHEN OLD.state IS NOT NEW.state OR OLD.state IN ('completed', 'failed')
BEGIN
  SELECT CASE
    WHEN (
      (OLD.state = 'pending' AND NEW.state = 'in_progress')
      OR (OLD.state = 'in_progress' AND NEW.state = 'fetching_pages')
      OR (OLD.state = 'fetching_pages' AND NEW.state = 'completed')
      OR (OLD.state = 'fetching_pages' AND NEW.state = 'failed')
      OR (OLD.state = 'in_progress' AND NEW.state = 'failed')
      OR (OLD.state = 'pending' AND NEW.state = 'failed')
    ) IS NOT TRUE THEN RAISE(ABORT, 'DT002 partition: it cannot go from its state to that one')
  END;
END;

CREATE TRIGGER detent_partition_frozen BEFORE UPDATE OF run_id, n, key, payload, job_id ON detent_partition
  FOR EACH ROW WHEN NEW.run_id IS NOT OLD.run_id OR NEW.n IS NOT OLD.n OR NEW.key IS NOT OLD.key
    OR NEW.payload IS NOT OLD.payload OR NEW.job_id IS NOT OLD.job_id
BEGIN
  SELECT RAISE(ABORT, 'DT041 partition: run, number, key, payload and job are written once');
END;

CREATE TRIGGER detent_watermark_begins BEFORE INSERT ON detent_watermark
  FOR EACH ROW WHEN EXISTS (SELECT 1 FROM detent_watermark WHERE tenant = NEW.tenant AND name = NEW.name)
    OR NOT EXISTS (SELECT 1 FROM detent_pipeline_run r
                    WHERE r.id = NEW.run_id AND r.state = 'completed' AND r.tenant = NEW.tenant
                      AND r.watermark = NEW.name AND r.captured_at = NEW.value)
BEGIN
  SELECT RAISE(ABORT, 'DT041 watermark: it stands where a completed run of it captured the time');
END;

CREATE TRIGGER detent_watermark_guard BEFORE UPDATE ON detent_watermark
  FOR EACH ROW WHEN NEW.tenant IS NOT OLD.tenant OR NEW.name IS NOT OLD.name OR NEW.value < OLD.value
    OR NOT EXISTS (SELECT 1 FROM detent_pipeline_run r
                    WHERE r.id = NEW.run_id AND r.state = 'completed' AND r.tenant = NEW.tenant
                      AND r.watermark = NEW.name AND r.captured_at = NEW.value)
BEGIN
  SELECT RAISE(ABORT, 'DT041 watermark: it moves forward, to where a completed run of it captured the time');
END;

CREATE TRIGGER detent_watermark_goes BEFORE DELETE ON detent_watermark
BEGIN
  SELECT RAISE(ABORT, 'DT041 watermark: it stays');
END;

-- What follows from what.

CREATE TRIGGER detent_pipeline_follows_job AFTER UPDATE OF state ON detent_job
  FOR EACH ROW WHEN NEW.run_id IS NOT NULL AND NEW.task LIKE 'detent.pipeline.%' AND NEW.state IS NOT OLD.state
BEGIN
  UPDATE detent_partition
     SET tries = tries + 1, started_at = coalesce(started_at, NEW.leased_at),
         state = CASE state WHEN 'pending' THEN 'in_progress' ELSE state END
   WHERE NEW.state = 'running' AND job_id = NEW.id AND state IN ('pending', 'in_progress', 'fetching_pages');
  UPDATE detent_partition SET tries = tries - 1
   WHERE OLD.state = 'running' AND NEW.state = 'pending' AND NEW.spared > OLD.spared AND job_id = NEW.id AND tries > 0;
  UPDATE detent_partition SET state = 'completed', ended_at = NEW.finished_at
   WHERE NEW.state = 'succeeded' AND job_id = NEW.id AND state = 'fetching_pages';
  UPDATE detent_partition
     SET state = 'failed', ended_at = NEW.finished_at,
         error = coalesce(NEW.error, NEW.cancel_reason, 'its job was ' || NEW.state)
   WHERE NEW.state IN ('failed', 'quarantined', 'cancelled') AND job_id = NEW.id
     AND state IN ('pending', 'in_progress', 'fetching_pages');
  -- A worker takes up the consolidation.
  INSERT INTO detent_transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, at)
    SELECT r.tenant, 'pipeline_run', CAST(r.id AS TEXT), r.state, 'consolidating', 'consolidate',
           coalesce((SELECT l.worker FROM detent_lease l WHERE l.id = NEW.lease_id), 'worker'), max(r.moved_at, NEW.leased_at)
      FROM detent_pipeline_run r
     WHERE r.id = NEW.run_id AND r.state = 'consolidation_triggered' AND NEW.state = 'running'
       AND NEW.task LIKE 'detent.pipeline.consolidate/%';
  UPDATE detent_pipeline_run SET state = 'consolidating', moved_at = max(moved_at, NEW.leased_at)
   WHERE id = NEW.run_id AND state = 'consolidation_triggered' AND NEW.state = 'running'
     AND NEW.task LIKE 'detent.pipeline.consolidate/%';
  -- A job that the run cannot do without came to rest without success; or the run was skipped, and that was said.
  INSERT INTO detent_transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    SELECT r.tenant, 'pipeline_run', CAST(r.id AS TEXT), r.state, 'failed', 'fail', 'system',
           'job ' || NEW.id || ' is ' || NEW.state, max(r.moved_at, NEW.finished_at)
      FROM detent_pipeline_run r
     WHERE r.id = NEW.run_id
       AND ((r.state = 'created' AND r.plan_job_id = NEW.id AND NEW.state IN ('failed', 'quarantined', 'cancelled'))
            OR (r.state IN ('consolidation_triggered', 'consolidating')
                AND NEW.task LIKE 'detent.pipeline.consolidate/%' AND NEW.state IN ('failed', 'quarantined', 'cancelled'))
            OR (r.state = 'consolidation_skipped' AND NEW.task LIKE 'detent.pipeline.skipped/%'
                AND NEW.state IN ('succeeded', 'failed', 'quarantined', 'cancelled')));
  UPDATE detent_pipeline_run
     SET state = 'failed', finished_at = max(moved_at, NEW.finished_at), moved_at = max(moved_at, NEW.finished_at),
         error = CASE WHEN state = 'consolidation_skipped'
                      THEN parts_failed || ' of ' || partitions || ' partitions failed: nothing was consolidated'
                      ELSE coalesce(NEW.error, NEW.cancel_reason, 'its job was ' || NEW.state) END
   WHERE id = NEW.run_id
     AND ((state = 'created' AND plan_job_id = NEW.id AND NEW.state IN ('failed', 'quarantined', 'cancelled'))
          OR (state IN ('consolidation_triggered', 'consolidating')
              AND NEW.task LIKE 'detent.pipeline.consolidate/%' AND NEW.state IN ('failed', 'quarantined', 'cancelled'))
          OR (state = 'consolidation_skipped' AND NEW.task LIKE 'detent.pipeline.skipped/%'
              AND NEW.state IN ('succeeded', 'failed', 'quarantined', 'cancelled')));
END;

CREATE TRIGGER detent_pipeline_follows_partition AFTER UPDATE OF state ON detent_partition
  FOR EACH ROW WHEN NEW.state IS NOT OLD.state AND (NEW.state = 'completed' OR NEW.state = 'failed')
BEGIN
  UPDATE detent_pipeline_run
     SET parts_ended = parts_ended + 1, parts_failed = parts_failed + (NEW.state = 'failed'),
         moved_at = max(moved_at, NEW.ended_at)
   WHERE id = NEW.run_id;
END;

CREATE TRIGGER detent_pipeline_fans_in AFTER UPDATE OF parts_ended, state ON detent_pipeline_run
  FOR EACH ROW WHEN NEW.state = 'workers_running' AND NEW.parts_ended = NEW.partitions
BEGIN
  INSERT INTO detent_transition_log
      (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, forced, at)
    VALUES (NEW.tenant, 'pipeline_run', CAST(NEW.id AS TEXT), 'workers_running',
            CASE WHEN NEW.parts_failed <= NEW.tolerated OR NEW.is_forced
                 THEN 'consolidation_triggered' ELSE 'consolidation_skipped' END,
            CASE WHEN NEW.parts_failed <= NEW.tolerated OR NEW.is_forced THEN 'fan_in' ELSE 'skip' END,
            CASE WHEN NEW.parts_failed > NEW.tolerated AND NEW.is_forced THEN NEW.started_by ELSE 'system' END,
            CASE WHEN NEW.parts_failed > NEW.tolerated AND NEW.is_forced THEN NEW.reason
                 WHEN NEW.parts_failed > 0 THEN NEW.parts_failed || ' of ' || NEW.partitions || ' partitions failed' END,
            NEW.parts_failed > NEW.tolerated AND NEW.is_forced, NEW.moved_at);
  UPDATE detent_pipeline_run
     SET state = CASE WHEN NEW.parts_failed <= NEW.tolerated OR NEW.is_forced
                      THEN 'consolidation_triggered' ELSE 'consolidation_skipped' END
   WHERE id = NEW.id;
END;

-- One job that says that a run was skipped, or failed otherwise; for a consolidation as many as there are portions to share, and no more than were asked for.
CREATE TRIGGER detent_pipeline_enqueues AFTER UPDATE OF state ON detent_pipeline_run
  FOR EACH ROW WHEN NEW.state IS NOT OLD.state
    AND (NEW.state = 'consolidation_triggered' OR NEW.state = 'consolidation_skipped'
         OR (NEW.state = 'failed' AND OLD.state <> 'consolidation_skipped'))
BEGIN
  INSERT INTO detent_lane (queue, task, tenant, priority, limit_key)
    SELECT NEW.queue, 'detent.pipeline.' || CASE NEW.state WHEN 'consolidation_skipped' THEN 'skipped/' WHEN 'failed' THEN 'failed/' ELSE 'consolidate/' END
             || NEW.name, NEW.tenant, NEW.priority, ''
     WHERE NOT EXISTS (
       SELECT 1 FROM detent_lane
        WHERE queue = NEW.queue AND tenant = NEW.tenant AND priority = NEW.priority AND limit_key = ''
          AND task = 'detent.pipeline.'
                || CASE NEW.state WHEN 'consolidation_skipped' THEN 'skipped/' WHEN 'failed' THEN 'failed/' ELSE 'consolidate/' END || NEW.name);
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
