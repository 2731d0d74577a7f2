-- Guards of workflows: what is on record stays until retention deletes its job.

CREATE OR REPLACE FUNCTION detent.workflow_guard() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    RAISE EXCEPTION 'DT041 workflow %: version, tree, origin and undo are written once, and generations only grow', OLD.job_id
      USING ERRCODE = 'DT041';
  ELSIF NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = OLD.job_id) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'DT041 workflow %: it goes with its job', OLD.job_id USING ERRCODE = 'DT041';
END $$;

CREATE OR REPLACE TRIGGER workflow_frozen BEFORE UPDATE OF job_id, version, generation, root_id, depth, forked_from, undo_of, undone_by ON detent.workflow
  FOR EACH ROW WHEN (NEW.job_id IS DISTINCT FROM OLD.job_id OR NEW.root_id IS DISTINCT FROM OLD.root_id OR NEW.depth IS DISTINCT FROM OLD.depth
    OR NEW.forked_from IS DISTINCT FROM OLD.forked_from OR (NEW.version IS DISTINCT FROM OLD.version AND OLD.version <> 0)
    OR NEW.generation < OLD.generation OR NEW.undo_of IS DISTINCT FROM OLD.undo_of
    OR (NEW.undone_by IS DISTINCT FROM OLD.undone_by AND OLD.undone_by IS NOT NULL AND NEW.generation = OLD.generation))
  EXECUTE FUNCTION detent.workflow_guard();

CREATE OR REPLACE TRIGGER workflow_goes BEFORE DELETE ON detent.workflow FOR EACH ROW EXECUTE FUNCTION detent.workflow_guard();

CREATE OR REPLACE TRIGGER workflow_step_keep BEFORE UPDATE OR DELETE ON detent.workflow_step FOR EACH ROW EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE TRIGGER workflow_step_keep_all BEFORE TRUNCATE ON detent.workflow_step EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE TRIGGER workflow_step_begun_keep BEFORE UPDATE OR DELETE ON detent.workflow_step_begun FOR EACH ROW EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE TRIGGER workflow_step_begun_keep_all BEFORE TRUNCATE ON detent.workflow_step_begun EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE TRIGGER workflow_signal_keep BEFORE UPDATE OR DELETE ON detent.workflow_signal FOR EACH ROW EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE TRIGGER workflow_signal_keep_all BEFORE TRUNCATE ON detent.workflow_signal EXECUTE FUNCTION detent.keep();

CREATE OR REPLACE FUNCTION detent.child_group_guard() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    RAISE EXCEPTION 'DT041 child_group %/%: it begins without children that have ended', NEW.parent_id, NEW.path
      USING ERRCODE = 'DT041';
  ELSIF TG_OP = 'UPDATE' THEN
    RAISE EXCEPTION 'DT041 child_group %/%: what it consists of is written once', OLD.parent_id, OLD.path USING ERRCODE = 'DT041';
  ELSIF NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = OLD.parent_id) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'DT041 child_group %/%: it goes with its parent', OLD.parent_id, OLD.path USING ERRCODE = 'DT041';
END $$;

CREATE OR REPLACE TRIGGER child_group_begins BEFORE INSERT ON detent.child_group
  FOR EACH ROW WHEN (NEW.succeeded <> 0 OR NEW.failed <> 0 OR NEW.dead <> 0) EXECUTE FUNCTION detent.child_group_guard();

CREATE OR REPLACE TRIGGER child_group_frozen BEFORE UPDATE OF parent_id, generation, path, first_id, total, closed ON detent.child_group
  FOR EACH ROW WHEN (NEW.parent_id IS DISTINCT FROM OLD.parent_id OR NEW.generation IS DISTINCT FROM OLD.generation
    OR NEW.path IS DISTINCT FROM OLD.path OR NEW.first_id IS DISTINCT FROM OLD.first_id OR (NEW.total IS DISTINCT FROM OLD.total AND (OLD.closed OR NOT NEW.closed OR NEW.total > OLD.total))
    OR (OLD.closed AND NOT NEW.closed))
  EXECUTE FUNCTION detent.child_group_guard();

CREATE OR REPLACE TRIGGER child_group_goes BEFORE DELETE ON detent.child_group FOR EACH ROW EXECUTE FUNCTION detent.child_group_guard();
