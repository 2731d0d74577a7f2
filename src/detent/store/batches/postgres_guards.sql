-- Guards of batch runs and their targets: the database refuses every move that their lifecycles do not declare.

CREATE OR REPLACE FUNCTION detent.batch_run_guard() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  last record;
BEGIN
  SELECT l.from_state, l.to_state, l.trigger INTO last
    FROM detent.transition_log l
   WHERE l.job_id IS NULL AND l.entity = 'batch_run' AND l.entity_id = OLD.id::text ORDER BY l.n DESC LIMIT 1;
  IF FOUND AND last.from_state = OLD.state AND last.to_state = NEW.state
     AND (last.trigger = 'repair' OR {{batch_run.pairs}}) THEN
    RETURN NEW;
  END IF;
  IF {{batch_run.pairs}} THEN
    RAISE EXCEPTION 'DT041 batch_run % may go from % to % only together with its line in transition_log',
      OLD.id, OLD.state, NEW.state USING ERRCODE = 'DT041';
  END IF;
  RAISE EXCEPTION 'DT002 batch_run % cannot go from % to %', OLD.id, OLD.state, NEW.state USING ERRCODE = 'DT002';
END $$;

CREATE OR REPLACE TRIGGER batch_run_guard BEFORE UPDATE OF state ON detent.batch_run
  FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION detent.batch_run_guard();

CREATE OR REPLACE FUNCTION detent.batch_run_refuse() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    RAISE EXCEPTION 'DT041 batch_run %: id, tenant, batch, payload, fingerprint, actor, created_at are written once', OLD.id USING ERRCODE = 'DT041';
  ELSIF TG_OP = 'INSERT' THEN
    RAISE EXCEPTION 'DT002 batch_run % must begin in state {{batch_run.initial}}, without targets', NEW.id
      USING ERRCODE = 'DT002';
  ELSIF OLD.state IN ('{{batch_run.initial}}', {{batch_run.rests}}) AND OLD.outstanding = 0 AND OLD.reconcile_at IS NULL
     AND OLD.moved_at < (SELECT max(h.before) FROM detent.horizon h) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'DT041 batch_run % is at work, to be looked at, or not below the horizon of retention', OLD.id
    USING ERRCODE = 'DT041';
END $$;

CREATE OR REPLACE TRIGGER batch_run_frozen BEFORE UPDATE OF id, tenant, batch, payload, fingerprint, actor, created_at ON detent.batch_run
  FOR EACH ROW WHEN (NEW.id IS DISTINCT FROM OLD.id OR NEW.tenant IS DISTINCT FROM OLD.tenant OR NEW.batch IS DISTINCT FROM OLD.batch OR NEW.payload IS DISTINCT FROM OLD.payload OR NEW.fingerprint IS DISTINCT FROM OLD.fingerprint OR NEW.actor IS DISTINCT FROM OLD.actor OR NEW.created_at IS DISTINCT FROM OLD.created_at) EXECUTE FUNCTION detent.batch_run_refuse();

CREATE OR REPLACE TRIGGER batch_run_begins BEFORE INSERT ON detent.batch_run
  FOR EACH ROW WHEN (NEW.state <> '{{batch_run.initial}}' OR NEW.total <> 0 OR NEW.outstanding <> 0)
  EXECUTE FUNCTION detent.batch_run_refuse();

CREATE OR REPLACE TRIGGER batch_run_goes BEFORE DELETE ON detent.batch_run FOR EACH ROW EXECUTE FUNCTION detent.batch_run_refuse();

CREATE OR REPLACE FUNCTION detent.target_guard() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  last record;
BEGIN
  SELECT l.from_state, l.to_state, l.trigger INTO last
    FROM detent.transition_log l
   WHERE l.job_id IS NULL AND l.entity = 'target' AND l.entity_id = OLD.run_id || '/' || OLD.n
   ORDER BY l.n DESC LIMIT 1;
  IF FOUND AND last.trigger = 'repair' AND last.from_state = OLD.state AND last.to_state = NEW.state THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'DT002 target % of batch_run % cannot go from % to %', OLD.n, OLD.run_id, OLD.state, NEW.state
    USING ERRCODE = 'DT002';
END $$;

CREATE OR REPLACE TRIGGER target_guard BEFORE UPDATE OF state ON detent.target
  FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state AND ({{target.shown}}) IS NOT TRUE)
  EXECUTE FUNCTION detent.target_guard();

-- Whether targets follow their jobs is checked once for all rows that a statement changes.
CREATE OR REPLACE FUNCTION detent.target_agrees() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  odd record;
BEGIN
  SELECT g.run_id, g.n, g.state, j.state AS job_is INTO odd
    FROM new_rows g
    LEFT JOIN detent.job j ON j.id = CASE WHEN g.state = 'rolled_back' THEN g.revert_job_id ELSE g.apply_job_id END
   WHERE g.state <> 'preview'
     AND (CASE g.state WHEN 'queued' THEN j.state = 'pending' WHEN 'applying' THEN j.state = 'running'
                       WHEN 'failed' THEN j.state IN ('failed', 'quarantined', 'cancelled')
                       ELSE j.state = 'succeeded' END) IS NOT TRUE
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'DT041 target % of batch_run % is % only together with its job, which is %',
      odd.n, odd.run_id, odd.state, coalesce(odd.job_is, 'not there') USING ERRCODE = 'DT041';
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER target_agrees AFTER UPDATE ON detent.target
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION detent.target_agrees();

CREATE OR REPLACE FUNCTION detent.target_refuse() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    RAISE EXCEPTION 'DT041 target % of batch_run %: run_id, n, ref, created_at, apply_job_id, revert_job_id, before, after, changed, preview_error, previewed_at are written once', OLD.n, OLD.run_id
      USING ERRCODE = 'DT041';
  ELSIF TG_OP = 'INSERT' THEN
    RAISE EXCEPTION 'DT002 target % of batch_run % must begin in state {{target.initial}}, without a preview',
      NEW.n, NEW.run_id USING ERRCODE = 'DT002';
  ELSIF NOT EXISTS (SELECT 1 FROM detent.batch_run b WHERE b.id = OLD.run_id) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'DT041 target % goes only with its batch_run %', OLD.n, OLD.run_id USING ERRCODE = 'DT041';
END $$;

CREATE OR REPLACE TRIGGER target_frozen BEFORE UPDATE OF run_id, n, ref, created_at, apply_job_id, revert_job_id, before, after, changed, preview_error, previewed_at ON detent.target
  FOR EACH ROW WHEN (NEW.run_id IS DISTINCT FROM OLD.run_id OR NEW.n IS DISTINCT FROM OLD.n OR NEW.ref IS DISTINCT FROM OLD.ref OR NEW.created_at IS DISTINCT FROM OLD.created_at OR (OLD.previewed_at IS NOT NULL AND NEW.before IS DISTINCT FROM OLD.before) OR (OLD.previewed_at IS NOT NULL AND NEW.after IS DISTINCT FROM OLD.after) OR (OLD.previewed_at IS NOT NULL AND NEW.changed IS DISTINCT FROM OLD.changed) OR (OLD.previewed_at IS NOT NULL AND NEW.preview_error IS DISTINCT FROM OLD.preview_error) OR (OLD.previewed_at IS NOT NULL AND NEW.previewed_at IS DISTINCT FROM OLD.previewed_at) OR (OLD.apply_job_id IS NOT NULL AND NEW.apply_job_id IS DISTINCT FROM OLD.apply_job_id) OR (OLD.revert_job_id IS NOT NULL AND NEW.revert_job_id IS DISTINCT FROM OLD.revert_job_id)) EXECUTE FUNCTION detent.target_refuse();

CREATE OR REPLACE TRIGGER target_begins BEFORE INSERT ON detent.target
  FOR EACH ROW WHEN (NEW.state <> '{{target.initial}}' OR NEW.previewed_at IS NOT NULL)
  EXECUTE FUNCTION detent.target_refuse();

CREATE OR REPLACE TRIGGER target_goes BEFORE DELETE ON detent.target FOR EACH ROW EXECUTE FUNCTION detent.target_refuse();
