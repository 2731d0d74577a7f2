-- oldest code: 14
-- Why a pipeline run failed, in words: a run that was skipped fails when nobody has forced it, and a job that somebody
-- stopped says why.

CREATE OR REPLACE FUNCTION detent.pipeline_follows_job() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  r     detent.pipeline_run;
  fails boolean := NEW.state IN ('failed', 'quarantined', 'cancelled');
  said  text := NEW.cancel_reason;
  why   text;
BEGIN
  IF NEW.state = 'cancelled' AND said IS NULL THEN
    SELECT l.reason INTO said FROM detent.transition_log l
     WHERE l.job_id = NEW.id AND l.to_state = 'cancelled' ORDER BY l.n DESC LIMIT 1;
  END IF;
  why := coalesce(NEW.error, said, 'its job was ' || NEW.state);
  IF NEW.task LIKE 'detent.pipeline.page/%' THEN
    IF NEW.state = 'running' THEN
      UPDATE detent.partition p
         SET tries = p.tries + 1, started_at = coalesce(p.started_at, NEW.leased_at),
             state = CASE p.state WHEN 'pending' THEN 'in_progress' ELSE p.state END
       WHERE p.job_id = NEW.id AND p.state IN ('pending', 'in_progress', 'fetching_pages');
    ELSIF NEW.state = 'pending' THEN
      UPDATE detent.partition p SET tries = p.tries - 1
       WHERE OLD.state = 'running' AND NEW.spared > OLD.spared AND p.job_id = NEW.id AND p.tries > 0;
    ELSIF NEW.state = 'succeeded' THEN
      UPDATE detent.partition p SET state = 'completed', ended_at = NEW.finished_at
       WHERE p.job_id = NEW.id AND p.state = 'fetching_pages';
    ELSE
      UPDATE detent.partition p SET state = 'failed', ended_at = NEW.finished_at, error = why
       WHERE p.job_id = NEW.id AND p.state IN ('pending', 'in_progress', 'fetching_pages');
    END IF;
    RETURN NULL;
  END IF;
  SELECT k.* INTO r FROM detent.pipeline_run k WHERE k.id = NEW.run_id FOR UPDATE;
  IF r.state = 'consolidation_triggered' AND NEW.state = 'running' AND NEW.task LIKE 'detent.pipeline.consolidate/%' THEN
    INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, at)
      VALUES (r.tenant, 'pipeline_run', r.id::text, r.state, 'consolidating', 'consolidate',
              coalesce((SELECT l.worker FROM detent.lease l WHERE l.id = NEW.lease_id), 'worker'),
              greatest(r.moved_at, NEW.leased_at));
    UPDATE detent.pipeline_run SET state = 'consolidating', moved_at = greatest(moved_at, NEW.leased_at) WHERE id = r.id;
  ELSIF (r.state = 'created' AND r.plan_job_id = NEW.id AND fails)
     OR (r.state IN ('consolidation_triggered', 'consolidating') AND NEW.task LIKE 'detent.pipeline.consolidate/%' AND fails)
     OR (r.state = 'consolidation_skipped' AND NEW.task LIKE 'detent.pipeline.skipped/%'
         AND (fails OR NEW.state = 'succeeded')) THEN
    INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, at)
      VALUES (r.tenant, 'pipeline_run', r.id::text, r.state, 'failed', 'fail', 'system',
              CASE WHEN r.state = 'consolidation_skipped' AND NEW.state = 'succeeded' THEN 'nobody has forced it'
                   ELSE 'job ' || NEW.id || ' is ' || NEW.state || coalesce(': ' || said, '') END,
              greatest(r.moved_at, NEW.finished_at));
    UPDATE detent.pipeline_run
       SET state = 'failed', finished_at = greatest(moved_at, NEW.finished_at), moved_at = greatest(moved_at, NEW.finished_at),
           error = CASE WHEN r.state = 'consolidation_skipped'
                        THEN parts_failed || ' of ' || partitions || ' partitions failed: nothing was consolidated'
                        ELSE why END
     WHERE id = r.id;
  END IF;
  RETURN NULL;
END $$;
