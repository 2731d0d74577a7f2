-- A group of children follows its children, and the last of them wakes the parent.

CREATE OR REPLACE FUNCTION detent.child_group_follows_job() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  g     detent.child_group;
  noted text;
BEGIN
  UPDATE detent.child_group c
     SET succeeded = c.succeeded + (NEW.state = 'succeeded')::integer - (OLD.state = 'succeeded')::integer,
         failed = c.failed + (NEW.state IN ('failed', 'cancelled'))::integer - (OLD.state IN ('failed', 'cancelled'))::integer,
         dead = c.dead + (NEW.state = 'quarantined')::integer - (OLD.state = 'quarantined')::integer
   WHERE c.parent_id = NEW.parent_id AND NEW.id < c.first_id + c.total
     AND c.first_id = (SELECT x.first_id FROM detent.child_group x
                        WHERE x.parent_id = NEW.parent_id AND x.first_id <= NEW.id ORDER BY x.first_id DESC LIMIT 1)
  RETURNING c.* INTO g;
  -- A child without a group may be a node: graphs follow at the end of the statement (`job_moved`), each by its id.
  IF g.parent_id IS NULL AND current_setting('detent.graph_at_work', true) IS DISTINCT FROM 'on' THEN
    noted := set_config('detent.nodes', concat(current_setting('detent.nodes', true), ',', NEW.id), true);
    noted := set_config('detent.moved', concat(current_setting('detent.moved', true), ','), true);
  END IF;
  -- A parent that is locked is not waited for: the lock order is child, group, parent.
  IF g.closed AND g.succeeded + g.failed + g.dead = g.total AND NEW.finished_at IS NOT NULL THEN
    CASE detent.workflow_wake_up(NEW.parent_id, detent.clock())
      WHEN 'locked' THEN
        INSERT INTO detent.wake_request (job_id) VALUES (NEW.parent_id);
        PERFORM detent.wake_waiters(false);
      WHEN 'woken' THEN
        PERFORM detent.wake_waiters(false);
      ELSE
        NULL;
    END CASE;
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER child_group_follows_job AFTER UPDATE OF state ON detent.job
  FOR EACH ROW WHEN (NEW.parent_id IS NOT NULL AND NEW.state IS DISTINCT FROM OLD.state
    AND (NEW.finished_at IS NOT NULL OR OLD.finished_at IS NOT NULL))
  EXECUTE FUNCTION detent.child_group_follows_job();

-- A signal is unread until a step takes it, also if copies of both are inserted, in either order.

CREATE OR REPLACE FUNCTION detent.signal_is_unread() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  INSERT INTO detent.workflow_unread (job_id, name, seq)
    SELECT NEW.job_id, NEW.name, NEW.seq
     WHERE NOT EXISTS (SELECT 1 FROM detent.workflow_step s
                        WHERE s.job_id = NEW.job_id AND s.signal_name = NEW.name AND s.signal_seq = NEW.seq
                          AND s.signal_seq IS NOT NULL)
    ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER workflow_signal_is_unread AFTER INSERT ON detent.workflow_signal
  FOR EACH ROW EXECUTE FUNCTION detent.signal_is_unread();

CREATE OR REPLACE FUNCTION detent.signal_is_taken() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  DELETE FROM detent.workflow_unread u WHERE u.job_id = NEW.job_id AND u.name = NEW.signal_name AND u.seq = NEW.signal_seq;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER workflow_step_takes_signal AFTER INSERT ON detent.workflow_step
  FOR EACH ROW WHEN (NEW.signal_seq IS NOT NULL) EXECUTE FUNCTION detent.signal_is_taken();
