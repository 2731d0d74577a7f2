-- Guards of the record: rows are added, and removed only by retention.

CREATE OR REPLACE FUNCTION detent.keep() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  newest timestamptz;
BEGIN
  IF TG_OP = 'DELETE' AND TG_TABLE_NAME IN ('execution', 'event', 'transition_log') THEN
    IF OLD.job_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = OLD.job_id) THEN
      RETURN OLD;
    END IF;
  END IF;
  IF TG_OP = 'DELETE' AND TG_TABLE_NAME = 'transition_log' THEN
    newest := (SELECT max(h.before) FROM detent.horizon h);
    IF OLD.job_id IS NULL AND OLD.at < newest AND (CASE OLD.entity
         WHEN 'batch_run' THEN NOT EXISTS (SELECT 1 FROM detent.batch_run b WHERE b.id = OLD.entity_id::bigint)
         WHEN 'pipeline_run' THEN NOT EXISTS (SELECT 1 FROM detent.pipeline_run r WHERE r.id = OLD.entity_id::bigint)
         ELSE EXISTS (SELECT 1 FROM detent.transition_log l
                       WHERE l.job_id IS NULL AND l.entity = OLD.entity AND l.entity_id = OLD.entity_id
                         AND l.n > OLD.n AND l.at < newest)
       END) THEN
      RETURN OLD;
    END IF;
  ELSIF TG_OP = 'DELETE' AND TG_TABLE_NAME = 'horizon' THEN
    newest := (SELECT max(h.before) FROM detent.horizon h);
    IF OLD.before < newest AND OLD.at < newest THEN
      RETURN OLD;
    END IF;
  END IF;
  RAISE EXCEPTION 'DT041 % is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'DT041';
END $$;

CREATE OR REPLACE TRIGGER job_keep_all BEFORE TRUNCATE ON detent.job EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE TRIGGER execution_keep BEFORE UPDATE OR DELETE ON detent.execution FOR EACH ROW EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE TRIGGER execution_keep_all BEFORE TRUNCATE ON detent.execution EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE TRIGGER event_keep BEFORE UPDATE OR DELETE ON detent.event FOR EACH ROW EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE TRIGGER event_keep_all BEFORE TRUNCATE ON detent.event EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE TRIGGER transition_log_keep BEFORE UPDATE OR DELETE ON detent.transition_log FOR EACH ROW EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE TRIGGER transition_log_keep_all BEFORE TRUNCATE ON detent.transition_log EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE TRIGGER horizon_keep BEFORE UPDATE OR DELETE ON detent.horizon FOR EACH ROW EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE TRIGGER horizon_keep_all BEFORE TRUNCATE ON detent.horizon EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE TRIGGER migration_keep BEFORE UPDATE OR DELETE ON detent.migration FOR EACH ROW EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE TRIGGER migration_keep_all BEFORE TRUNCATE ON detent.migration EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE TRIGGER batch_run_keep_all BEFORE TRUNCATE ON detent.batch_run EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE TRIGGER target_keep_all BEFORE TRUNCATE ON detent.target EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE TRIGGER identity_keep BEFORE UPDATE OR DELETE ON detent.identity FOR EACH ROW EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE TRIGGER identity_keep_all BEFORE TRUNCATE ON detent.identity EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE FUNCTION detent.identity_grows() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM detent.identity i WHERE i.n >= NEW.n OR i.first_id >= NEW.first_id) THEN
    RAISE EXCEPTION 'DT041 identity: numbers and first ids only grow' USING ERRCODE = 'DT041';
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER identity_begins BEFORE INSERT ON detent.identity FOR EACH ROW EXECUTE FUNCTION detent.identity_grows();
