-- The graph follows its nodes, and nodes follow those before them. The trigger of children sets `outcome`.
-- An UPDATE inside a trigger does not fire the same trigger again, so each of these has one part of it.

CREATE TRIGGER detent_graph_counts_node AFTER UPDATE OF outcome ON detent_graph_node
  FOR EACH ROW WHEN NEW.outcome IS NOT OLD.outcome
BEGIN
  UPDATE detent_graph
     SET succeeded = succeeded + (NEW.outcome IS 'succeeded') - (OLD.outcome IS 'succeeded'),
         failed = failed + (NEW.outcome IS 'failed') - (OLD.outcome IS 'failed')
   WHERE job_id = NEW.graph_id;
END;

-- Nodes that needed the success of this one cannot start, nor can those that need theirs.
CREATE TRIGGER detent_graph_node_lost AFTER UPDATE OF outcome ON detent_graph_node
  FOR EACH ROW WHEN NEW.outcome IS 'failed' AND OLD.outcome IS NOT 'failed'
BEGIN
  UPDATE detent_graph_node SET lost_by = NEW.job_id
   WHERE job_id IN (
     WITH RECURSIVE lost (id) AS (
       SELECT NEW.job_id
       UNION
       SELECT a.job_id FROM lost
         JOIN detent_job_after a ON a.after_id = lost.id AND a.kind = 'success' AND NOT a.met
         JOIN detent_job j ON j.id = a.job_id AND j.state = 'pending'
     ) SELECT id FROM lost WHERE id <> NEW.job_id);
  INSERT INTO detent_transition_log
      (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor, reason, correlation_id, at)
    SELECT j.tenant, 'job', CAST(j.id AS TEXT), j.id, j.attempt, 'pending', 'cancelled', 'cancel', 'system',
           'node `' || NEW.name || '` (job ' || NEW.job_id || '), which it needs, is ' || p.state, j.correlation_id, p.finished_at
      FROM detent_graph_node n
      JOIN detent_job j ON j.id = n.job_id AND j.state = 'pending'
      JOIN detent_job p ON p.id = NEW.job_id
     WHERE n.lost_by = NEW.job_id ORDER BY j.id;
  INSERT INTO detent_transition_delta (at, task, from_state, to_state, outcome, held_us, waited_us)
    SELECT p.finished_at, j.task, 'pending', 'cancelled', '', 0, 0
      FROM detent_graph_node n
      JOIN detent_job j ON j.id = n.job_id AND j.state = 'pending'
      JOIN detent_job p ON p.id = NEW.job_id
     WHERE n.lost_by = NEW.job_id ORDER BY j.id;
  DELETE FROM detent_waiting WHERE job_id IN (SELECT n.job_id FROM detent_graph_node n WHERE n.lost_by = NEW.job_id);
  UPDATE detent_job SET state = 'cancelled', finished_at = (SELECT p.finished_at FROM detent_job p WHERE p.id = NEW.job_id)
   WHERE state = 'pending' AND id IN (SELECT n.job_id FROM detent_graph_node n WHERE n.lost_by = NEW.job_id);
  UPDATE detent_graph_node SET outcome = 'failed' WHERE lost_by = NEW.job_id AND outcome IS NULL;
END;

-- What waited for this node waits for one node less.
CREATE TRIGGER detent_graph_node_ended AFTER UPDATE OF outcome ON detent_graph_node
  FOR EACH ROW WHEN NEW.outcome IS NOT NULL AND NEW.outcome IS NOT OLD.outcome
BEGIN
  UPDATE detent_job_after SET met = 1 WHERE after_id = NEW.job_id AND NOT met AND (kind = 'end' OR NEW.outcome = 'succeeded');
END;

CREATE TRIGGER detent_job_after_met AFTER UPDATE OF met ON detent_job_after
  FOR EACH ROW WHEN NEW.met AND NOT OLD.met
BEGIN
  UPDATE detent_graph_node SET blocked = blocked - 1 WHERE job_id = NEW.job_id;
END;

-- Nothing is left to wait for: the node is due now. One that was cancelled is so too, for the case that it is retried.
CREATE TRIGGER detent_graph_node_free AFTER UPDATE OF blocked ON detent_graph_node
  FOR EACH ROW WHEN NEW.blocked = 0 AND OLD.blocked > 0
BEGIN
  UPDATE detent_job
     SET due_at = (SELECT max(p.finished_at) FROM detent_job_after a JOIN detent_job p ON p.id = a.after_id
                    WHERE a.job_id = NEW.job_id)
   WHERE id = NEW.job_id;
  INSERT INTO detent_ready (lane_id, ready_at, job_id, holds_key, expires_at)
    SELECT w.lane_id, j.due_at, w.job_id, w.holds_key, w.expires_at
      FROM detent_waiting w JOIN detent_job j ON j.id = w.job_id WHERE w.job_id = NEW.job_id;
  DELETE FROM detent_waiting WHERE job_id = NEW.job_id;
END;

-- A node that had ended is tried again: what only waited for its end, and was cancelled before it began, waits for it again.
CREATE TRIGGER detent_graph_node_again AFTER UPDATE OF outcome ON detent_graph_node
  FOR EACH ROW WHEN NEW.outcome IS NULL AND OLD.outcome IS NOT NULL
BEGIN
  UPDATE detent_job_after SET met = 0
   WHERE after_id = NEW.job_id AND kind = 'end' AND met
     AND EXISTS (SELECT 1 FROM detent_job j WHERE j.id = detent_job_after.job_id AND j.state = 'cancelled' AND j.attempt = 0);
END;

CREATE TRIGGER detent_job_after_unmet AFTER UPDATE OF met ON detent_job_after
  FOR EACH ROW WHEN OLD.met AND NOT NEW.met
BEGIN
  UPDATE detent_graph_node SET blocked = blocked + 1 WHERE job_id = NEW.job_id;
  UPDATE detent_job SET due_at = 253370764800000000 WHERE id = NEW.job_id;  -- 9999-01-01: never
END;

-- The last node has ended, and the graph with it.
CREATE TRIGGER detent_graph_ends AFTER UPDATE OF succeeded, failed ON detent_graph
  FOR EACH ROW WHEN NEW.succeeded + NEW.failed = NEW.total
BEGIN
  INSERT INTO detent_transition_log
      (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor, reason, correlation_id, at)
    SELECT j.tenant, 'job', CAST(j.id AS TEXT), j.id, j.attempt, 'pending',
           CASE WHEN NEW.failed = 0 THEN 'succeeded' ELSE 'failed' END,
           CASE WHEN NEW.failed = 0 THEN 'complete' ELSE 'fail_with_node' END, 'system', f.reason, j.correlation_id,
           max(j.created_at, (SELECT max(k.finished_at) FROM detent_graph_node n JOIN detent_job k ON k.id = n.job_id
                               WHERE n.graph_id = NEW.job_id))
      FROM detent_job j
      LEFT JOIN (SELECT 'node `' || n.name || '` (job ' || k.id || ') is ' || k.state AS reason
                   FROM detent_graph_node n JOIN detent_job k ON k.id = n.job_id
                  WHERE n.graph_id = NEW.job_id AND n.outcome = 'failed'
                  ORDER BY n.lost_by IS NOT NULL, k.finished_at, k.id LIMIT 1) f ON true
     WHERE j.id = NEW.job_id AND j.state = 'pending';
  INSERT INTO detent_transition_delta (at, task, from_state, to_state, outcome, held_us, waited_us)
    SELECT l.at, j.task, 'pending', l.to_state, '', 0, 0
      FROM detent_job j
      JOIN detent_transition_log l ON l.n = (SELECT max(x.n) FROM detent_transition_log x WHERE x.job_id = j.id)
     WHERE j.id = NEW.job_id AND j.state = 'pending';
  DELETE FROM detent_waiting WHERE job_id = NEW.job_id;
  UPDATE detent_job
     SET state = l.to_state, finished_at = l.at, error = l.reason,
         committed_at = CASE l.to_state WHEN 'succeeded' THEN l.at END
    FROM (SELECT x.to_state, x.at, x.reason FROM detent_transition_log x WHERE x.job_id = NEW.job_id ORDER BY x.n DESC LIMIT 1) l
   WHERE detent_job.id = NEW.job_id AND detent_job.state = 'pending';
END;

-- A node was retried: a graph that has failed because of it goes on.
CREATE TRIGGER detent_graph_goes_on AFTER UPDATE OF outcome ON detent_graph_node
  FOR EACH ROW WHEN NEW.outcome IS NULL AND OLD.outcome IS NOT NULL
BEGIN
  INSERT INTO detent_transition_log
      (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor, reason, correlation_id, at)
    SELECT j.tenant, 'job', CAST(j.id AS TEXT), j.id, j.attempt, j.state, 'pending', 'retry', l.actor,
           'node `' || NEW.name || '` (job ' || NEW.job_id || ') is tried again', j.correlation_id, max(l.at, j.finished_at)
      FROM detent_job j
      JOIN detent_transition_log l ON l.n = (SELECT max(x.n) FROM detent_transition_log x WHERE x.job_id = NEW.job_id)
     WHERE j.id = NEW.graph_id AND j.state = 'failed';
  INSERT INTO detent_transition_delta (at, task, from_state, to_state, outcome, held_us, waited_us)
    SELECT l.at, j.task, 'failed', 'pending', '', l.at - j.finished_at, 0
      FROM detent_job j
      JOIN detent_transition_log l ON l.n = (SELECT max(x.n) FROM detent_transition_log x WHERE x.job_id = j.id)
     WHERE j.id = NEW.graph_id AND j.state = 'failed';
  INSERT INTO detent_waiting (lane_id, due_at, job_id, holds_key, priority)
    SELECT w.id, j.due_at, j.id, 0, j.priority
      FROM detent_job j
      JOIN detent_lane w ON w.queue = j.queue AND w.task = j.task AND w.tenant = j.tenant AND w.priority = j.priority
        AND w.limit_key = coalesce(j.limit_key, '') AND w.version = 0
     WHERE j.id = NEW.graph_id AND j.state = 'failed';
  UPDATE detent_job SET state = 'pending', finished_at = NULL, error = NULL, spared = attempt
   WHERE id = NEW.graph_id AND state = 'failed';
END;
