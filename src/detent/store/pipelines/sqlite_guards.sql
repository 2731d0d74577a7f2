-- Guards of pipeline runs, partitions and watermarks.

CREATE TRIGGER detent_pipeline_run_begins BEFORE INSERT ON detent_pipeline_run
  FOR EACH ROW WHEN NEW.state <> '{{pipeline_run.initial}}' OR NEW.partitions <> 0 OR NEW.parts_ended <> 0
    OR EXISTS (SELECT 1 FROM detent_pipeline_run WHERE id = NEW.id)
BEGIN
  SELECT RAISE(ABORT, 'DT002 pipeline_run: it must begin once, in state {{pipeline_run.initial}}, without partitions');
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
  FOR EACH ROW WHEN OLD.state NOT IN ('completed', 'failed', 'cancelled')
BEGIN
  SELECT RAISE(ABORT, 'DT041 pipeline_run: it has not ended');
END;

CREATE TRIGGER detent_partition_begins BEFORE INSERT ON detent_partition
  FOR EACH ROW WHEN NEW.state <> '{{partition.initial}}' OR NEW.pages <> 0 OR NEW.next_offset <> '0'
    OR EXISTS (SELECT 1 FROM detent_partition WHERE run_id = NEW.run_id AND (n = NEW.n OR key = NEW.key))
    OR EXISTS (SELECT 1 FROM detent_partition WHERE job_id = NEW.job_id)
BEGIN
  SELECT RAISE(ABORT, 'DT002 partition: it must begin once, in state {{partition.initial}}, at the first page');
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

CREATE TRIGGER detent_pipeline_run_guard BEFORE UPDATE OF state ON detent_pipeline_run
  FOR EACH ROW WHEN OLD.state IS NOT NEW.state
BEGIN
  SELECT CASE
    WHEN (
      {{pipeline_run.pairs}}
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

CREATE TRIGGER detent_partition_guard BEFORE UPDATE OF state, next_offset, last_page, pages ON detent_partition
  FOR EACH ROW WHEN OLD.state IS NOT NEW.state OR OLD.state IN ({{partition.rests}})
BEGIN
  SELECT CASE
    WHEN (
      {{partition.pairs}}
    ) IS NOT TRUE THEN RAISE(ABORT, 'DT002 partition: it cannot go from its state to that one')
  END;
END;
