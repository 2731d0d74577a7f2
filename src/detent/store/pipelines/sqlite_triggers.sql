-- A partition follows its job, and the pipeline run follows its partitions.

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
         error = coalesce(NEW.error, NEW.cancel_reason, (
           SELECT l.reason FROM detent_transition_log l
            WHERE l.job_id = NEW.id AND l.to_state = 'cancelled' AND NEW.state = 'cancelled' ORDER BY l.n DESC LIMIT 1
         ), 'its job was ' || NEW.state)
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
  -- A job that the run needs ended without success, or the run was skipped, and the alert job has run.
  INSERT INTO detent_transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    SELECT r.tenant, 'pipeline_run', CAST(r.id AS TEXT), r.state, 'failed', 'fail', 'system',
           CASE WHEN r.state = 'consolidation_skipped' AND NEW.state = 'succeeded' THEN 'it was not forced'
                ELSE 'job ' || NEW.id || ' is ' || NEW.state || coalesce(': ' || coalesce(NEW.cancel_reason, (
                       SELECT l.reason FROM detent_transition_log l
                        WHERE l.job_id = NEW.id AND l.to_state = 'cancelled' AND NEW.state = 'cancelled'
                        ORDER BY l.n DESC LIMIT 1
                     )), '') END,
           max(r.moved_at, NEW.finished_at)
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
                      ELSE coalesce(NEW.error, NEW.cancel_reason, (
                        SELECT l.reason FROM detent_transition_log l
                         WHERE l.job_id = NEW.id AND l.to_state = 'cancelled' AND NEW.state = 'cancelled'
                         ORDER BY l.n DESC LIMIT 1
                      ), 'its job was ' || NEW.state) END
   WHERE id = NEW.run_id
     AND ((state = 'created' AND plan_job_id = NEW.id AND NEW.state IN ('failed', 'quarantined', 'cancelled'))
          OR (state IN ('consolidation_triggered', 'consolidating')
              AND NEW.task LIKE 'detent.pipeline.consolidate/%' AND NEW.state IN ('failed', 'quarantined', 'cancelled'))
          OR (state = 'consolidation_skipped' AND NEW.task LIKE 'detent.pipeline.skipped/%'
              AND NEW.state IN ('succeeded', 'failed', 'quarantined', 'cancelled')));
END;

-- Enqueue one job that reports a skipped or failed run, or the jobs of a consolidation: one for each portion, at most `replicas`.
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
          AND task = 'detent.pipeline.' || CASE NEW.state WHEN 'consolidation_skipped' THEN 'skipped/' WHEN 'failed' THEN 'failed/' ELSE 'consolidate/' END || NEW.name
          AND version = 0);
  INSERT INTO detent_lane (id, queue, task, tenant, priority, limit_key)
    SELECT coalesce((SELECT max(l.id) FROM detent_lane l WHERE l.id > (g.id << 32) AND l.id < ((g.id + 1) << 32)), g.id << 32) + 1,
           g.queue, g.task, NEW.tenant, NEW.priority, ''
      FROM detent_lane_group g
     WHERE g.queue = NEW.queue
       AND g.task = 'detent.pipeline.' || CASE NEW.state WHEN 'consolidation_skipped' THEN 'skipped/' WHEN 'failed' THEN 'failed/' ELSE 'consolidate/' END || NEW.name
       AND g.version = 0 AND NOT EXISTS (
         SELECT 1 FROM detent_lane
          WHERE queue = g.queue AND task = g.task AND tenant = NEW.tenant AND priority = NEW.priority AND limit_key = ''
            AND version = 0);
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
                        AND l.limit_key = '' AND l.version = 0
     WHERE j.id >= (SELECT next FROM detent_ids) - NEW.replicas AND j.id < (SELECT next FROM detent_ids)
       AND j.run_id = NEW.id;
  INSERT INTO detent_job_span (created_at, block, first_id, last_id)
    SELECT created_at, id >> 10, min(id), max(id) FROM detent_job
     WHERE id >= (SELECT next FROM detent_ids) - NEW.replicas AND id < (SELECT next FROM detent_ids) AND run_id = NEW.id
     GROUP BY created_at, id >> 10;
END;
