-- Guards of workflows: what is on record stays, and only the running attempt adds to it.

CREATE TRIGGER detent_workflow_begins BEFORE INSERT ON detent_workflow
  WHEN EXISTS (SELECT 1 FROM detent_workflow WHERE job_id = NEW.job_id)
BEGIN
  SELECT RAISE(ABORT, 'DT041 workflow: it begins once');
END;

CREATE TRIGGER detent_workflow_frozen BEFORE UPDATE OF job_id, version, generation, root_id, depth, forked_from, undo_of, undone_by ON detent_workflow
  WHEN NEW.job_id IS NOT OLD.job_id OR NEW.root_id IS NOT OLD.root_id OR NEW.depth IS NOT OLD.depth OR NEW.forked_from IS NOT OLD.forked_from
    OR (NEW.version IS NOT OLD.version AND OLD.version <> 0) OR NEW.generation < OLD.generation
    OR NEW.undo_of IS NOT OLD.undo_of
    OR (NEW.undone_by IS NOT OLD.undone_by AND OLD.undone_by IS NOT NULL AND NEW.generation IS OLD.generation)
BEGIN
  SELECT RAISE(ABORT, 'DT041 workflow: version, tree, origin and undo are written once, and generations only grow');
END;

CREATE TRIGGER detent_workflow_goes BEFORE DELETE ON detent_workflow WHEN (NOT EXISTS (SELECT 1 FROM detent_job WHERE id = OLD.job_id)) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT041 workflow: it goes with its job');
END;

CREATE TRIGGER detent_workflow_step_keep BEFORE UPDATE ON detent_workflow_step
BEGIN
  SELECT RAISE(ABORT, 'DT041 workflow_step is append-only: UPDATE refused');
END;

CREATE TRIGGER detent_workflow_step_goes BEFORE DELETE ON detent_workflow_step WHEN (NOT EXISTS (SELECT 1 FROM detent_job WHERE id = OLD.job_id)) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT041 workflow_step is append-only: DELETE refused');
END;

CREATE TRIGGER detent_workflow_step_begins BEFORE INSERT ON detent_workflow_step
  WHEN EXISTS (SELECT 1 FROM detent_workflow_step WHERE job_id = NEW.job_id AND generation = NEW.generation AND path = NEW.path)
    OR (NEW.signal_seq IS NOT NULL AND EXISTS (
      SELECT 1 FROM detent_workflow_step
       WHERE job_id = NEW.job_id AND signal_name = NEW.signal_name AND signal_seq = NEW.signal_seq AND signal_seq IS NOT NULL
         AND (CASE WHEN attempt = 0 THEN generation ELSE 0 END) = (CASE WHEN NEW.attempt = 0 THEN NEW.generation ELSE 0 END)))
    OR (NEW.attempt <> 0 AND NOT EXISTS (
      SELECT 1 FROM detent_job
       WHERE id = NEW.job_id AND state = 'running' AND attempt = NEW.attempt AND committed_at IS NULL))
BEGIN
  SELECT RAISE(ABORT, 'DT041 workflow_step: a step is recorded once, by the running attempt, before its commit');
END;

CREATE TRIGGER detent_workflow_step_begun_keep BEFORE UPDATE ON detent_workflow_step_begun
BEGIN
  SELECT RAISE(ABORT, 'DT041 workflow_step_begun is append-only: UPDATE refused');
END;

CREATE TRIGGER detent_workflow_step_begun_goes BEFORE DELETE ON detent_workflow_step_begun WHEN (NOT EXISTS (SELECT 1 FROM detent_job WHERE id = OLD.job_id)) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT041 workflow_step_begun is append-only: DELETE refused');
END;

CREATE TRIGGER detent_workflow_step_begun_begins BEFORE INSERT ON detent_workflow_step_begun
  WHEN EXISTS (SELECT 1 FROM detent_workflow_step_begun
                WHERE job_id = NEW.job_id AND generation = NEW.generation AND path = NEW.path AND attempt = NEW.attempt)
BEGIN
  SELECT RAISE(ABORT, 'DT041 workflow_step_begun is append-only: REPLACE refused');
END;

CREATE TRIGGER detent_workflow_signal_keep BEFORE UPDATE ON detent_workflow_signal
BEGIN
  SELECT RAISE(ABORT, 'DT041 workflow_signal is append-only: UPDATE refused');
END;

CREATE TRIGGER detent_workflow_signal_goes BEFORE DELETE ON detent_workflow_signal WHEN (NOT EXISTS (SELECT 1 FROM detent_job WHERE id = OLD.job_id)) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT041 workflow_signal is append-only: DELETE refused');
END;

CREATE TRIGGER detent_workflow_signal_begins BEFORE INSERT ON detent_workflow_signal
  WHEN EXISTS (SELECT 1 FROM detent_workflow_signal WHERE job_id = NEW.job_id AND name = NEW.name AND seq = NEW.seq)
    OR (NEW.dedupe IS NOT NULL AND EXISTS (
      SELECT 1 FROM detent_workflow_signal
       WHERE job_id = NEW.job_id AND name = NEW.name AND dedupe = NEW.dedupe AND dedupe IS NOT NULL))
BEGIN
  SELECT RAISE(ABORT, 'DT041 workflow_signal is append-only: REPLACE refused');
END;

CREATE TRIGGER detent_child_group_begins BEFORE INSERT ON detent_child_group
  WHEN NEW.succeeded <> 0 OR NEW.failed <> 0 OR NEW.dead <> 0
    OR EXISTS (SELECT 1 FROM detent_child_group WHERE parent_id = NEW.parent_id AND generation = NEW.generation AND path = NEW.path)
    OR EXISTS (SELECT 1 FROM detent_child_group WHERE parent_id = NEW.parent_id AND first_id = NEW.first_id)
BEGIN
  SELECT RAISE(ABORT, 'DT041 child_group: it begins once, without children that have ended');
END;

CREATE TRIGGER detent_child_group_frozen BEFORE UPDATE OF parent_id, generation, path, first_id, total, closed ON detent_child_group
  WHEN NEW.parent_id IS NOT OLD.parent_id OR NEW.generation IS NOT OLD.generation OR NEW.path IS NOT OLD.path
    OR NEW.first_id IS NOT OLD.first_id OR (NEW.total IS NOT OLD.total AND (OLD.closed OR NOT NEW.closed OR NEW.total > OLD.total)) OR (OLD.closed AND NOT NEW.closed)
BEGIN
  SELECT RAISE(ABORT, 'DT041 child_group: what it consists of is written once');
END;

CREATE TRIGGER detent_child_group_goes BEFORE DELETE ON detent_child_group WHEN (NOT EXISTS (SELECT 1 FROM detent_job WHERE id = OLD.parent_id)) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT041 child_group: it goes with its parent');
END;
