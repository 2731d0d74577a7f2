-- Guards of batch runs and their targets: the database refuses every move that their lifecycles do not declare.

CREATE TRIGGER detent_batch_run_frozen BEFORE UPDATE OF id, tenant, batch, payload, fingerprint, actor, created_at ON detent_batch_run
  FOR EACH ROW WHEN NEW.id IS NOT OLD.id OR NEW.tenant IS NOT OLD.tenant OR NEW.batch IS NOT OLD.batch OR NEW.payload IS NOT OLD.payload OR NEW.fingerprint IS NOT OLD.fingerprint OR NEW.actor IS NOT OLD.actor OR NEW.created_at IS NOT OLD.created_at
BEGIN
  SELECT RAISE(ABORT, 'DT041 batch_run: id, tenant, batch, payload, fingerprint, actor, created_at are written once');
END;

-- differs: REPLACE would delete the old row without firing guards, so an existing id is refused before.
CREATE TRIGGER detent_batch_run_begins BEFORE INSERT ON detent_batch_run
  FOR EACH ROW WHEN NEW.state <> '{{batch_run.initial}}' OR NEW.total <> 0 OR NEW.outstanding <> 0
    OR EXISTS (SELECT 1 FROM detent_batch_run WHERE id = NEW.id)
BEGIN
  SELECT RAISE(ABORT, 'DT002 batch_run: it must begin once, in state {{batch_run.initial}}, without targets');
END;

CREATE TRIGGER detent_batch_run_goes BEFORE DELETE ON detent_batch_run
  FOR EACH ROW WHEN (
      OLD.state IN ('{{batch_run.initial}}', {{batch_run.rests}}) AND OLD.outstanding = 0 AND OLD.reconcile_at IS NULL
      AND OLD.moved_at < (SELECT max(before) FROM detent_horizon)
  ) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT041 batch_run: it is at work, to be looked at, or not below the horizon of retention');
END;

CREATE TRIGGER detent_target_guard BEFORE UPDATE OF state ON detent_target
  FOR EACH ROW WHEN OLD.state IS NOT NEW.state
BEGIN
  SELECT CASE
    WHEN ({{target.shown}}) AND EXISTS (
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
    WHEN {{target.shown}}
      THEN RAISE(ABORT, 'DT041 target: this move is made only together with its job')
    ELSE RAISE(ABORT, 'DT002 target: it cannot go from its state to that one')
  END;
END;

CREATE TRIGGER detent_target_frozen BEFORE UPDATE OF run_id, n, ref, created_at, apply_job_id, revert_job_id, before, after, changed, preview_error, previewed_at ON detent_target
  FOR EACH ROW WHEN NEW.run_id IS NOT OLD.run_id OR NEW.n IS NOT OLD.n OR NEW.ref IS NOT OLD.ref OR NEW.created_at IS NOT OLD.created_at OR (OLD.previewed_at IS NOT NULL AND NEW.before IS NOT OLD.before) OR (OLD.previewed_at IS NOT NULL AND NEW.after IS NOT OLD.after) OR (OLD.previewed_at IS NOT NULL AND NEW.changed IS NOT OLD.changed) OR (OLD.previewed_at IS NOT NULL AND NEW.preview_error IS NOT OLD.preview_error) OR (OLD.previewed_at IS NOT NULL AND NEW.previewed_at IS NOT OLD.previewed_at) OR (OLD.apply_job_id IS NOT NULL AND NEW.apply_job_id IS NOT OLD.apply_job_id) OR (OLD.revert_job_id IS NOT NULL AND NEW.revert_job_id IS NOT OLD.revert_job_id)
BEGIN
  SELECT RAISE(ABORT, 'DT041 target: run_id, n, ref, created_at, apply_job_id, revert_job_id, before, after, changed, preview_error, previewed_at are written once');
END;

CREATE TRIGGER detent_target_begins BEFORE INSERT ON detent_target
  FOR EACH ROW WHEN NEW.state <> '{{target.initial}}' OR NEW.previewed_at IS NOT NULL
    OR EXISTS (SELECT 1 FROM detent_target WHERE run_id = NEW.run_id AND n = NEW.n)
    OR EXISTS (SELECT 1 FROM detent_target WHERE run_id = NEW.run_id AND ref = NEW.ref)
BEGIN
  SELECT RAISE(ABORT, 'DT002 target: it must begin once, in state {{target.initial}}, without a preview');
END;

CREATE TRIGGER detent_target_goes BEFORE DELETE ON detent_target
  FOR EACH ROW WHEN EXISTS (SELECT 1 FROM detent_batch_run WHERE id = OLD.run_id)
BEGIN
  SELECT RAISE(ABORT, 'DT041 target: it goes only with its batch_run');
END;

CREATE TRIGGER detent_batch_run_guard BEFORE UPDATE OF state ON detent_batch_run
  FOR EACH ROW WHEN OLD.state IS NOT NEW.state
BEGIN
  SELECT CASE
    WHEN EXISTS (
      SELECT 1 FROM (SELECT from_state, to_state, trigger FROM detent_transition_log
                      WHERE job_id IS NULL AND entity = 'batch_run' AND entity_id = CAST(OLD.id AS TEXT)
                      ORDER BY n DESC LIMIT 1) last
       WHERE last.from_state = OLD.state AND last.to_state = NEW.state AND (last.trigger = 'repair' OR {{batch_run.pairs}}))
      THEN NULL
    WHEN {{batch_run.pairs}}
      THEN RAISE(ABORT, 'DT041 batch_run: this move is made only together with its line in transition_log')
    ELSE RAISE(ABORT, 'DT002 batch_run: it cannot go from its state to that one')
  END;
END;
