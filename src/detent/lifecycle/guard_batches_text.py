"""The fixed text around the generated conditions of the guards of batch runs, one piece for each database."""

from __future__ import annotations

HEADER = """\
-- Guards of batch runs, generated from lifecycles batch_run version {run} and target version {target}
-- by `python -m detent.lifecycle.guard_batches`. A test keeps them equal: change the lifecycles, not this file.
"""

GUARDS_POSTGRES = """
CREATE FUNCTION detent.batch_run_guard() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  last record;
BEGIN
  SELECT l.from_state, l.to_state, l.trigger INTO last
    FROM detent.transition_log l
   WHERE l.job_id IS NULL AND l.entity = 'batch_run' AND l.entity_id = OLD.id::text ORDER BY l.n DESC LIMIT 1;
  IF FOUND AND last.from_state = OLD.state AND last.to_state = NEW.state
     AND (last.trigger = 'repair' OR {run_pairs}) THEN
    RETURN NEW;
  END IF;
  IF {run_pairs} THEN
    RAISE EXCEPTION 'DT041 batch_run % may go from % to % only together with its line in transition_log',
      OLD.id, OLD.state, NEW.state USING ERRCODE = 'DT041';
  END IF;
  RAISE EXCEPTION 'DT002 batch_run % cannot go from % to %', OLD.id, OLD.state, NEW.state USING ERRCODE = 'DT002';
END $$;

CREATE TRIGGER batch_run_guard BEFORE UPDATE OF state ON detent.batch_run
  FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION detent.batch_run_guard();

CREATE FUNCTION detent.batch_run_refuse() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    RAISE EXCEPTION 'DT041 batch_run %: {run_frozen} are written once', OLD.id USING ERRCODE = 'DT041';
  ELSIF TG_OP = 'INSERT' THEN
    RAISE EXCEPTION 'DT002 batch_run % must begin in state {run_initial}, without targets', NEW.id
      USING ERRCODE = 'DT002';
  ELSIF OLD.state IN ('{run_initial}', {rests}) AND OLD.outstanding = 0 AND OLD.reconcile_at IS NULL
     AND OLD.moved_at < (SELECT max(h.before) FROM detent.horizon h) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'DT041 batch_run % is at work, to be looked at, or not below the horizon of retention', OLD.id
    USING ERRCODE = 'DT041';
END $$;

CREATE TRIGGER batch_run_frozen BEFORE UPDATE OF {run_frozen} ON detent.batch_run
  FOR EACH ROW WHEN ({run_thawed}) EXECUTE FUNCTION detent.batch_run_refuse();

CREATE TRIGGER batch_run_begins BEFORE INSERT ON detent.batch_run
  FOR EACH ROW WHEN (NEW.state <> '{run_initial}' OR NEW.total <> 0 OR NEW.outstanding <> 0)
  EXECUTE FUNCTION detent.batch_run_refuse();

CREATE TRIGGER batch_run_goes BEFORE DELETE ON detent.batch_run FOR EACH ROW EXECUTE FUNCTION detent.batch_run_refuse();
CREATE TRIGGER batch_run_keep_all BEFORE TRUNCATE ON detent.batch_run EXECUTE FUNCTION detent.keep();

CREATE FUNCTION detent.target_guard() RETURNS trigger LANGUAGE plpgsql
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

CREATE TRIGGER target_guard BEFORE UPDATE OF state ON detent.target
  FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state AND ({target_pairs}) IS NOT TRUE)
  EXECUTE FUNCTION detent.target_guard();

-- That a target is where its job is, is asked once for all that a statement moves.
CREATE FUNCTION detent.target_agrees() RETURNS trigger LANGUAGE plpgsql
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

CREATE TRIGGER target_agrees AFTER UPDATE ON detent.target
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION detent.target_agrees();

CREATE FUNCTION detent.target_refuse() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    RAISE EXCEPTION 'DT041 target % of batch_run %: {target_frozen} are written once', OLD.n, OLD.run_id
      USING ERRCODE = 'DT041';
  ELSIF TG_OP = 'INSERT' THEN
    RAISE EXCEPTION 'DT002 target % of batch_run % must begin in state {target_initial}, without a preview',
      NEW.n, NEW.run_id USING ERRCODE = 'DT002';
  ELSIF NOT EXISTS (SELECT 1 FROM detent.batch_run b WHERE b.id = OLD.run_id) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'DT041 target % goes only with its batch_run %', OLD.n, OLD.run_id USING ERRCODE = 'DT041';
END $$;

CREATE TRIGGER target_frozen BEFORE UPDATE OF {target_frozen} ON detent.target
  FOR EACH ROW WHEN ({target_thawed}) EXECUTE FUNCTION detent.target_refuse();

CREATE TRIGGER target_begins BEFORE INSERT ON detent.target
  FOR EACH ROW WHEN (NEW.state <> '{target_initial}' OR NEW.previewed_at IS NOT NULL)
  EXECUTE FUNCTION detent.target_refuse();

CREATE TRIGGER target_goes BEFORE DELETE ON detent.target FOR EACH ROW EXECUTE FUNCTION detent.target_refuse();
CREATE TRIGGER target_keep_all BEFORE TRUNCATE ON detent.target EXECUTE FUNCTION detent.keep();
"""

GUARDS_SQLITE = """
CREATE TRIGGER detent_batch_run_guard BEFORE UPDATE OF state ON detent_batch_run
  FOR EACH ROW WHEN OLD.state IS NOT NEW.state
BEGIN
  SELECT CASE
    WHEN EXISTS (
      SELECT 1 FROM (SELECT from_state, to_state, trigger FROM detent_transition_log
                      WHERE job_id IS NULL AND entity = 'batch_run' AND entity_id = CAST(OLD.id AS TEXT)
                      ORDER BY n DESC LIMIT 1) last
       WHERE last.from_state = OLD.state AND last.to_state = NEW.state AND (last.trigger = 'repair' OR {run_pairs}))
      THEN NULL
    WHEN {run_pairs}
      THEN RAISE(ABORT, 'DT041 batch_run: this move is made only together with its line in transition_log')
    ELSE RAISE(ABORT, 'DT002 batch_run: it cannot go from its state to that one')
  END;
END;

CREATE TRIGGER detent_batch_run_frozen BEFORE UPDATE OF {run_frozen} ON detent_batch_run
  FOR EACH ROW WHEN {run_thawed}
BEGIN
  SELECT RAISE(ABORT, 'DT041 batch_run: {run_frozen} are written once');
END;

-- differs: a REPLACE would delete the old row without asking, so an id that is there is refused before.
CREATE TRIGGER detent_batch_run_begins BEFORE INSERT ON detent_batch_run
  FOR EACH ROW WHEN NEW.state <> '{run_initial}' OR NEW.total <> 0 OR NEW.outstanding <> 0
    OR EXISTS (SELECT 1 FROM detent_batch_run WHERE id = NEW.id)
BEGIN
  SELECT RAISE(ABORT, 'DT002 batch_run: it must begin once, in state {run_initial}, without targets');
END;

CREATE TRIGGER detent_batch_run_goes BEFORE DELETE ON detent_batch_run
  FOR EACH ROW WHEN (
      OLD.state IN ('{run_initial}', {rests}) AND OLD.outstanding = 0 AND OLD.reconcile_at IS NULL
      AND OLD.moved_at < (SELECT max(before) FROM detent_horizon)
  ) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT041 batch_run: it is at work, to be looked at, or not below the horizon of retention');
END;

CREATE TRIGGER detent_target_guard BEFORE UPDATE OF state ON detent_target
  FOR EACH ROW WHEN OLD.state IS NOT NEW.state
BEGIN
  SELECT CASE
    WHEN ({target_pairs}) AND EXISTS (
      SELECT 1 FROM detent_job j
       WHERE j.id = CASE WHEN NEW.state = 'rolled_back' THEN NEW.revert_job_id ELSE NEW.apply_job_id END
         AND CASE NEW.state WHEN 'queued' THEN j.state = 'pending' WHEN 'applying' THEN j.state = 'running'
                            WHEN 'failed' THEN j.state IN ('failed', 'quarantined', 'cancelled')
                            ELSE j.state = 'succeeded' END)
      THEN NULL
    WHEN EXISTS (
      SELECT 1 FROM (SELECT from_state, to_state, trigger FROM detent_transition_log
                      WHERE job_id IS NULL AND entity = 'target' AND entity_id = OLD.run_id || '/' || OLD.n
                      ORDER BY n DESC LIMIT 1) last
       WHERE last.trigger = 'repair' AND last.from_state = OLD.state AND last.to_state = NEW.state)
      THEN NULL
    WHEN {target_pairs}
      THEN RAISE(ABORT, 'DT041 target: this move is made only together with its job')
    ELSE RAISE(ABORT, 'DT002 target: it cannot go from its state to that one')
  END;
END;

CREATE TRIGGER detent_target_frozen BEFORE UPDATE OF {target_frozen} ON detent_target
  FOR EACH ROW WHEN {target_thawed}
BEGIN
  SELECT RAISE(ABORT, 'DT041 target: {target_frozen} are written once');
END;

CREATE TRIGGER detent_target_begins BEFORE INSERT ON detent_target
  FOR EACH ROW WHEN NEW.state <> '{target_initial}' OR NEW.previewed_at IS NOT NULL
    OR EXISTS (SELECT 1 FROM detent_target WHERE run_id = NEW.run_id AND n = NEW.n)
    OR EXISTS (SELECT 1 FROM detent_target WHERE run_id = NEW.run_id AND ref = NEW.ref)
BEGIN
  SELECT RAISE(ABORT, 'DT002 target: it must begin once, in state {target_initial}, without a preview');
END;

CREATE TRIGGER detent_target_goes BEFORE DELETE ON detent_target
  FOR EACH ROW WHEN EXISTS (SELECT 1 FROM detent_batch_run WHERE id = OLD.run_id)
BEGIN
  SELECT RAISE(ABORT, 'DT041 target: it goes only with its batch_run');
END;
"""
