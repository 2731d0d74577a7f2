-- Guards of ops runs.

-- Only moves of the lifecycle ops_run are allowed; each is announced on the channel `ops_runs`. If there are targets of outgoing
-- webhooks, a run that ends is put on the list of ends that they have to be told of.
CREATE OR REPLACE FUNCTION detent.ops_run_moves() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  was    text := detent.ops_state(OLD.state, OLD.started_at);
  now_is text := detent.ops_state(NEW.state, CASE WHEN NEW.attempt = OLD.attempt THEN NEW.started_at END);
BEGIN
  IF was = now_is THEN
    RETURN NEW;
  END IF;
  IF (was, now_is) NOT IN ({{ops_run.moves}})
     AND NOT coalesce((SELECT l.trigger = 'repair' FROM detent.transition_log l
                        WHERE l.job_id = OLD.id ORDER BY l.n DESC LIMIT 1), false) THEN
    RAISE EXCEPTION 'DT002 ops_run run-% cannot go from % to %', OLD.id, was, now_is USING ERRCODE = 'DT002';
  END IF;
  PERFORM pg_notify('ops_runs', format('{"run_id":"run-%s","status":"%s"}', OLD.id, now_is));
  IF NEW.finished_at IS NOT NULL AND EXISTS (SELECT 1 FROM detent.webhook_target) THEN
    INSERT INTO detent.failure_report (job_id, attempt, task) VALUES (NEW.id, NEW.attempt, NEW.task)
      ON CONFLICT ON CONSTRAINT failure_report_pkey DO NOTHING;
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER job_ops_run AFTER UPDATE OF state, started_at ON detent.job
  FOR EACH ROW WHEN (NEW.task = 'ops.run') EXECUTE FUNCTION detent.ops_run_moves();

CREATE OR REPLACE FUNCTION detent.ops_keep() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF TG_TABLE_NAME = 'ops_run' AND TG_OP = 'DELETE' THEN
    IF NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = OLD.job_id) THEN
      RETURN OLD;
    END IF;
  END IF;
  RAISE EXCEPTION 'DT041 % is written once: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'DT041';
END $$;

CREATE OR REPLACE TRIGGER ops_run_keep BEFORE UPDATE ON detent.ops_run
  FOR EACH ROW WHEN (OLD.finish_metadata IS NOT NULL OR NEW.job_id <> OLD.job_id OR NEW.environment_id <> OLD.environment_id
    OR NEW.git_sha IS DISTINCT FROM OLD.git_sha OR NEW.git_ref IS DISTINCT FROM OLD.git_ref
    OR NEW.key IS DISTINCT FROM OLD.key)
  EXECUTE FUNCTION detent.ops_keep();

CREATE OR REPLACE TRIGGER ops_run_goes BEFORE DELETE ON detent.ops_run FOR EACH ROW EXECUTE FUNCTION detent.ops_keep();

CREATE OR REPLACE TRIGGER ops_run_keep_all BEFORE TRUNCATE ON detent.ops_run EXECUTE FUNCTION detent.ops_keep();

CREATE OR REPLACE TRIGGER ops_environment_keep BEFORE UPDATE OR DELETE ON detent.ops_environment
  FOR EACH ROW EXECUTE FUNCTION detent.ops_keep();

CREATE OR REPLACE TRIGGER ops_environment_keep_all BEFORE TRUNCATE ON detent.ops_environment EXECUTE FUNCTION detent.ops_keep();
