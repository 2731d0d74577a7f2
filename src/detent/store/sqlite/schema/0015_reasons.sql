-- oldest code: 14
-- Why a pipeline run failed, in words: a run that was skipped fails when nobody has forced it, and a job that somebody
-- stopped says why.

DROP TRIGGER detent_pipeline_follows_job;

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
  -- A job that the run cannot do without came to rest without success; or the run was skipped, and that was said.
  INSERT INTO detent_transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    SELECT r.tenant, 'pipeline_run', CAST(r.id AS TEXT), r.state, 'failed', 'fail', 'system',
           CASE WHEN r.state = 'consolidation_skipped' AND NEW.state = 'succeeded' THEN 'nobody has forced it'
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
