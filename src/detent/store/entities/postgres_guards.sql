-- The guard of users' own tables: lifecycle, id column, state column, initial state, declared pairs. It is called for an
-- INSERT, and for an UPDATE that changes the state or the id; each row is turned into JSON once.
CREATE OR REPLACE FUNCTION detent.entity_guard() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  entity   text := TG_ARGV[0];
  now_row  jsonb := to_jsonb(NEW);
  id       text := now_row ->> TG_ARGV[1];
  now_is   text := now_row ->> TG_ARGV[2];
  was_row  jsonb;
  was      text;
  last     record;
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF now_is IS DISTINCT FROM TG_ARGV[3] THEN
      RAISE EXCEPTION 'DT002 % % must begin in state %', entity, id, TG_ARGV[3] USING ERRCODE = 'DT002';
    END IF;
    INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, at)
      VALUES (entity, id, NULL, now_is, 'create', 'database', detent.clock());
    RETURN NEW;
  END IF;
  was_row := to_jsonb(OLD);
  was := was_row ->> TG_ARGV[2];
  IF was_row ->> TG_ARGV[1] IS DISTINCT FROM id THEN
    RAISE EXCEPTION 'DT041 % %: its id is written once', entity, was_row ->> TG_ARGV[1] USING ERRCODE = 'DT041';
  END IF;
  IF was IS NOT DISTINCT FROM now_is THEN
    RETURN NEW;
  END IF;
  IF NOT (was || '>' || now_is) = ANY (string_to_array(TG_ARGV[4], ',')) THEN
    RAISE EXCEPTION 'DT002 % % cannot go from % to %', entity, id, was, now_is USING ERRCODE = 'DT002';
  END IF;
  SELECT l.from_state, l.to_state INTO last
    FROM detent.transition_log l
   WHERE l.job_id IS NULL AND l.entity = TG_ARGV[0] AND l.entity_id = id ORDER BY l.n DESC LIMIT 1;
  IF FOUND AND last.from_state = was AND last.to_state = now_is THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'DT041 % % may go from % to % only together with its line in transition_log', entity, id, was, now_is
    USING ERRCODE = 'DT041';
END $$;

-- Guards of the record: rows are added, and removed only by retention.

CREATE OR REPLACE FUNCTION detent.keep() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  newest timestamptz;
BEGIN
  IF TG_OP = 'DELETE' AND TG_TABLE_NAME IN
       ('execution', 'event', 'transition_log', 'workflow_step', 'workflow_step_begun', 'workflow_signal') THEN
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
