-- A partition follows its job, and the pipeline run follows its partitions.

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
              CASE WHEN r.state = 'consolidation_skipped' AND NEW.state = 'succeeded' THEN 'it was not forced'
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

CREATE OR REPLACE TRIGGER pipeline_follows_job AFTER UPDATE OF state ON detent.job
  FOR EACH ROW WHEN (NEW.run_id IS NOT NULL AND NEW.task LIKE 'detent.pipeline.%' AND NEW.state IS DISTINCT FROM OLD.state)
  EXECUTE FUNCTION detent.pipeline_follows_job();

CREATE OR REPLACE FUNCTION detent.pipeline_follows_partition() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  UPDATE detent.pipeline_run r
     SET parts_ended = r.parts_ended + 1, parts_failed = r.parts_failed + (NEW.state = 'failed')::integer,
         moved_at = greatest(r.moved_at, NEW.ended_at)
   WHERE r.id = NEW.run_id;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER pipeline_follows_partition AFTER UPDATE OF state ON detent.partition
  FOR EACH ROW WHEN (NEW.state IS DISTINCT FROM OLD.state AND (NEW.state = 'completed' OR NEW.state = 'failed'))
  EXECUTE FUNCTION detent.pipeline_follows_partition();

CREATE OR REPLACE FUNCTION detent.pipeline_fans_in() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  forced boolean := NEW.parts_failed > NEW.tolerated AND NEW.is_forced;
  goes_on boolean := NEW.parts_failed <= NEW.tolerated OR NEW.is_forced;
  to_state text := CASE WHEN goes_on THEN 'consolidation_triggered' ELSE 'consolidation_skipped' END;
BEGIN
  INSERT INTO detent.transition_log
      (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, forced, at)
    VALUES (NEW.tenant, 'pipeline_run', NEW.id::text, 'workers_running', to_state,
            CASE WHEN goes_on THEN 'fan_in' ELSE 'skip' END,
            CASE WHEN forced THEN NEW.started_by ELSE 'system' END,
            CASE WHEN forced THEN NEW.reason
                 WHEN NEW.parts_failed > 0 THEN NEW.parts_failed || ' of ' || NEW.partitions || ' partitions failed' END,
            forced, NEW.moved_at);
  UPDATE detent.pipeline_run SET state = to_state WHERE id = NEW.id;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER pipeline_fans_in AFTER UPDATE OF parts_ended, state ON detent.pipeline_run
  FOR EACH ROW WHEN (NEW.state = 'workers_running' AND NEW.parts_ended = NEW.partitions)
  EXECUTE FUNCTION detent.pipeline_fans_in();

-- Enqueue one job that reports a skipped or failed run, or the jobs of a consolidation: one for each portion, at most `replicas`.
CREATE OR REPLACE FUNCTION detent.pipeline_enqueues() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  kind text := CASE NEW.state WHEN 'consolidation_skipped' THEN 'skipped/' WHEN 'failed' THEN 'failed/' ELSE 'consolidate/' END;
  jobs integer := 1;
  ids  bigint[];
BEGIN
  IF NEW.state = 'consolidation_triggered' THEN
    jobs := least(NEW.replicas, greatest(1, ceil((SELECT coalesce(sum(p.staged), 0) FROM detent.partition p
                                                   WHERE p.run_id = NEW.id) / NEW.portion_size::numeric)))::integer;
  END IF;
  ids := ARRAY(SELECT detent.ids_reserve_v1(1) FROM generate_series(1, jobs));
  PERFORM detent.job_enqueue_v1(
    ids, ARRAY(SELECT (random() * 9e18)::bigint FROM generate_series(1, jobs)),
    ARRAY['detent.pipeline.' || kind || NEW.name], ARRAY['{"run_id":' || NEW.id || '}'], ARRAY[NEW.queue],
    ARRAY[NEW.tenant], ARRAY[NEW.priority], '{1000000}', '{false}', '{true}', '{false}',
    p_run_ids => array_fill(NEW.id, ARRAY[jobs]), p_notify => false);
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER pipeline_enqueues AFTER UPDATE OF state ON detent.pipeline_run
  FOR EACH ROW WHEN (NEW.state IS DISTINCT FROM OLD.state
    AND (NEW.state = 'consolidation_triggered' OR NEW.state = 'consolidation_skipped'
         OR (NEW.state = 'failed' AND OLD.state <> 'consolidation_skipped')))
  EXECUTE FUNCTION detent.pipeline_enqueues();
