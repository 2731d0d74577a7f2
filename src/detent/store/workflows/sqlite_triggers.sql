-- A group of children follows its children, and the last of them wakes the parent.

CREATE TRIGGER detent_child_group_follows_job AFTER UPDATE OF state ON detent_job
  FOR EACH ROW WHEN NEW.parent_id IS NOT NULL AND NEW.state IS NOT OLD.state
    AND (NEW.finished_at IS NOT NULL OR OLD.finished_at IS NOT NULL)
BEGIN
  UPDATE detent_child_group
     SET succeeded = succeeded + (NEW.state = 'succeeded') - (OLD.state = 'succeeded'),
         failed = failed + (NEW.state IN ('failed', 'cancelled')) - (OLD.state IN ('failed', 'cancelled')),
         dead = dead + (NEW.state = 'quarantined') - (OLD.state = 'quarantined')
   WHERE parent_id = NEW.parent_id AND NEW.id < first_id + total
     AND first_id = (SELECT max(g.first_id) FROM detent_child_group g WHERE g.parent_id = NEW.parent_id AND g.first_id <= NEW.id);
  -- Wake the parent if it is parked and this group was what it waited for.
  INSERT INTO detent_ready (lane_id, ready_at, job_id, holds_key, expires_at)
    SELECT q.lane_id, max(NEW.finished_at, w.parked_at), q.job_id, q.holds_key, q.expires_at
      FROM detent_waiting q
      JOIN detent_job p ON p.id = q.job_id AND p.state = 'pending'
      JOIN detent_workflow w ON w.job_id = p.id AND w.parked_attempt = p.ended
     WHERE NEW.finished_at IS NOT NULL AND q.job_id = NEW.parent_id AND q.limit_key IS NULL
       AND EXISTS (
         SELECT 1 FROM detent_workflow_wait x
           JOIN detent_child_group g ON g.parent_id = x.job_id AND g.generation = w.generation AND g.path = x.name
          WHERE x.job_id = NEW.parent_id AND x.kind = 'children' AND g.closed AND NEW.id >= g.first_id
            AND NEW.id < g.first_id + g.total
            AND g.succeeded + g.failed + CASE WHEN x.settled THEN 0 ELSE g.dead END = g.total);
  UPDATE detent_job
     SET due_at = (SELECT max(NEW.finished_at, w.parked_at) FROM detent_workflow w WHERE w.job_id = NEW.parent_id)
   WHERE id = NEW.parent_id AND state = 'pending'
     AND EXISTS (
       SELECT 1 FROM detent_waiting q
         JOIN detent_workflow w ON w.job_id = q.job_id
         JOIN detent_ready r ON r.lane_id = q.lane_id AND r.ready_at = max(NEW.finished_at, w.parked_at) AND r.job_id = q.job_id
        WHERE q.job_id = NEW.parent_id AND NEW.finished_at IS NOT NULL);
  DELETE FROM detent_waiting
   WHERE job_id = NEW.parent_id AND limit_key IS NULL
     AND EXISTS (
       SELECT 1 FROM detent_job p
         JOIN detent_ready r ON r.lane_id = detent_waiting.lane_id AND r.ready_at = p.due_at AND r.job_id = p.id
        WHERE p.id = NEW.parent_id);
  -- A node of a graph: what follows from it is in graphs/sqlite_triggers.sql.
  UPDATE detent_graph_node
     SET outcome = CASE WHEN NEW.state = 'succeeded' THEN 'succeeded' WHEN NEW.state IN ('failed', 'cancelled') THEN 'failed' END,
         lost_by = NULL
   WHERE job_id = NEW.id;
END;

-- A signal is unread until a step takes it, also if copies of both are inserted, in either order.

CREATE TRIGGER detent_workflow_signal_is_unread AFTER INSERT ON detent_workflow_signal
  FOR EACH ROW WHEN NOT EXISTS (
    SELECT 1 FROM detent_workflow_step
     WHERE job_id = NEW.job_id AND signal_name = NEW.name AND signal_seq = NEW.seq AND signal_seq IS NOT NULL)
BEGIN
  INSERT OR IGNORE INTO detent_workflow_unread (job_id, name, seq) VALUES (NEW.job_id, NEW.name, NEW.seq);
END;

CREATE TRIGGER detent_workflow_step_takes_signal AFTER INSERT ON detent_workflow_step
  FOR EACH ROW WHEN NEW.signal_seq IS NOT NULL
BEGIN
  DELETE FROM detent_workflow_unread WHERE job_id = NEW.job_id AND name = NEW.signal_name AND seq = NEW.signal_seq;
END;
