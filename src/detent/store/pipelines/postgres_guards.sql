-- Guards of pipeline runs, partitions and watermarks.

CREATE OR REPLACE FUNCTION detent.pipeline_run_guard() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  last record;
BEGIN
  IF TG_OP = 'INSERT' THEN
    RAISE EXCEPTION 'DT002 pipeline_run %: it must begin once, in state {{pipeline_run.initial}}, without partitions', NEW.id
      USING ERRCODE = 'DT002';
  ELSIF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'DT041 pipeline_run %: it has not ended', OLD.id USING ERRCODE = 'DT041';
  ELSIF (NEW.id, NEW.tenant, NEW.name, NEW.payload, NEW.watermark, NEW.since, NEW.captured_at, NEW.is_full,
      NEW.is_forced, NEW.plan_job_id, NEW.created_at)
    IS DISTINCT FROM (OLD.id, OLD.tenant, OLD.name, OLD.payload, OLD.watermark, OLD.since, OLD.captured_at, OLD.is_full,
      OLD.is_forced, OLD.plan_job_id, OLD.created_at) THEN
    RAISE EXCEPTION 'DT041 pipeline_run %: what it was started for is written once', OLD.id USING ERRCODE = 'DT041';
  ELSIF NOT (
      {{pipeline_run.pairs}}) THEN
    RAISE EXCEPTION 'DT002 pipeline_run % cannot go from % to %', OLD.id, OLD.state, NEW.state USING ERRCODE = 'DT002';
  END IF;
  SELECT l.from_state, l.to_state INTO last FROM detent.transition_log l
   WHERE l.job_id IS NULL AND l.entity = 'pipeline_run' AND l.entity_id = OLD.id::text ORDER BY l.n DESC LIMIT 1;
  IF FOUND AND last.from_state = OLD.state AND last.to_state = NEW.state THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'DT041 pipeline_run % may go from % to % only together with its line in transition_log',
    OLD.id, OLD.state, NEW.state USING ERRCODE = 'DT041';
END $$;

CREATE OR REPLACE TRIGGER pipeline_run_begins BEFORE INSERT ON detent.pipeline_run
  FOR EACH ROW WHEN (NEW.state <> '{{pipeline_run.initial}}' OR NEW.partitions <> 0 OR NEW.parts_ended <> 0)
  EXECUTE FUNCTION detent.pipeline_run_guard();

CREATE OR REPLACE TRIGGER pipeline_run_guard BEFORE UPDATE OF state ON detent.pipeline_run
  FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION detent.pipeline_run_guard();

CREATE OR REPLACE TRIGGER pipeline_run_frozen
  BEFORE UPDATE OF id, tenant, name, payload, watermark, since, captured_at, is_full, is_forced, plan_job_id, created_at
  ON detent.pipeline_run
  FOR EACH ROW WHEN ((NEW.id, NEW.tenant, NEW.name, NEW.payload, NEW.watermark, NEW.since, NEW.captured_at, NEW.is_full,
      NEW.is_forced, NEW.plan_job_id, NEW.created_at)
    IS DISTINCT FROM (OLD.id, OLD.tenant, OLD.name, OLD.payload, OLD.watermark, OLD.since, OLD.captured_at, OLD.is_full,
      OLD.is_forced, OLD.plan_job_id, OLD.created_at))
  EXECUTE FUNCTION detent.pipeline_run_guard();

CREATE OR REPLACE TRIGGER pipeline_run_goes BEFORE DELETE ON detent.pipeline_run
  FOR EACH ROW WHEN (OLD.state NOT IN ('completed', 'failed', 'cancelled')) EXECUTE FUNCTION detent.pipeline_run_guard();

CREATE OR REPLACE FUNCTION detent.partition_guard() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    RAISE EXCEPTION 'DT002 partition %/%: it must begin once, in state {{partition.initial}}, at the first page', NEW.run_id, NEW.n
      USING ERRCODE = 'DT002';
  ELSIF (NEW.run_id, NEW.n, NEW.key, NEW.payload, NEW.job_id)
      IS DISTINCT FROM (OLD.run_id, OLD.n, OLD.key, OLD.payload, OLD.job_id) THEN
    RAISE EXCEPTION 'DT041 partition %/%: run, number, key, payload and job are written once', OLD.run_id, OLD.n
      USING ERRCODE = 'DT041';
  ELSIF NOT (
      {{partition.pairs}}) THEN
    RAISE EXCEPTION 'DT002 partition %/% cannot go from % to %', OLD.run_id, OLD.n, OLD.state, NEW.state
      USING ERRCODE = 'DT002';
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER partition_begins BEFORE INSERT ON detent.partition
  FOR EACH ROW WHEN (NEW.state <> '{{partition.initial}}' OR NEW.pages <> 0 OR NEW.next_offset <> '0')
  EXECUTE FUNCTION detent.partition_guard();

CREATE OR REPLACE TRIGGER partition_guard BEFORE UPDATE OF state, next_offset, last_page, pages ON detent.partition
  FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state OR OLD.state IN ({{partition.rests}}))
  EXECUTE FUNCTION detent.partition_guard();

CREATE OR REPLACE TRIGGER partition_frozen BEFORE UPDATE OF run_id, n, key, payload, job_id ON detent.partition
  FOR EACH ROW WHEN ((NEW.run_id, NEW.n, NEW.key, NEW.payload, NEW.job_id)
    IS DISTINCT FROM (OLD.run_id, OLD.n, OLD.key, OLD.payload, OLD.job_id))
  EXECUTE FUNCTION detent.partition_guard();

CREATE OR REPLACE FUNCTION detent.watermark_guard() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'DT041 watermark %: it stays', OLD.name USING ERRCODE = 'DT041';
  END IF;
  IF TG_OP = 'UPDATE' THEN
    IF NEW.tenant <> OLD.tenant OR NEW.name <> OLD.name OR NEW.value < OLD.value THEN
      RAISE EXCEPTION 'DT041 watermark %: it moves forward', OLD.name USING ERRCODE = 'DT041';
    END IF;
  END IF;
  IF EXISTS (SELECT 1 FROM detent.pipeline_run r
              WHERE r.id = NEW.run_id AND r.state = 'completed' AND r.tenant = NEW.tenant AND r.watermark = NEW.name
                AND r.captured_at = NEW.value) THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'DT041 watermark %: it stands where a completed run of it captured the time', NEW.name
    USING ERRCODE = 'DT041';
END $$;

CREATE OR REPLACE TRIGGER watermark_guard BEFORE INSERT OR UPDATE OR DELETE ON detent.watermark
  FOR EACH ROW EXECUTE FUNCTION detent.watermark_guard();
