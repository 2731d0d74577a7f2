-- Attempts begin when their function is called: by `python -m detent.lifecycle.guard_starts`.
-- A test keeps this file equal to the lifecycle: change the lifecycle, not this file.
--
-- An ending says when the function was called. It may correct a start that an event or a
-- renewal had put on record too late.

DROP TRIGGER detent_job_guard;
CREATE TRIGGER detent_job_guard
  AFTER UPDATE OF state, attempt, ended, spared, lease_id, leased_at, started_at, committed_at, finished_at,
    result, error
  ON detent_job
  FOR EACH ROW WHEN (
      (OLD.state = 'running' AND (NEW.state = 'succeeded' OR NEW.state = 'pending' OR NEW.state = 'failed' OR NEW.state = 'cancelled' OR NEW.state = 'quarantined' OR NEW.state = 'running') AND NEW.attempt = OLD.attempt AND NEW.lease_id = OLD.lease_id AND NEW.leased_at = OLD.leased_at AND NEW.spared >= OLD.spared AND (OLD.started_at IS NULL OR NEW.started_at = OLD.started_at OR (NEW.state <> 'running' AND NEW.started_at BETWEEN OLD.leased_at AND OLD.started_at)) AND (OLD.committed_at IS NULL OR NEW.committed_at = OLD.committed_at))
   OR (OLD.state = 'pending' AND NEW.state = 'running' AND NEW.ended = OLD.ended AND NEW.spared = OLD.spared AND NEW.committed_at IS NULL AND NEW.started_at IS NULL)
  ) IS NOT TRUE
BEGIN
  SELECT CASE
    WHEN OLD.state = 'succeeded' AND NEW.state = 'succeeded' AND NEW.result IS NULL AND OLD.result_dropped_at IS NULL AND NEW.result_dropped_at IS NOT NULL
     AND NEW.error IS OLD.error AND NEW.finished_at IS OLD.finished_at AND NEW.attempt IS OLD.attempt AND NEW.ended IS OLD.ended AND NEW.spared IS OLD.spared AND NEW.lease_id IS OLD.lease_id AND NEW.leased_at IS OLD.leased_at AND NEW.started_at IS OLD.started_at AND NEW.committed_at IS OLD.committed_at
      THEN NULL
    WHEN OLD.committed_at IS NOT NULL AND NEW.committed_at IS NOT OLD.committed_at
      THEN RAISE(ABORT, 'DT041 job: committed_at is written once')
    WHEN NEW.attempt < OLD.attempt OR NEW.ended < OLD.ended OR NEW.spared < OLD.spared
      THEN RAISE(ABORT, 'DT041 job: attempt, ended and spared only grow')
    WHEN EXISTS (
      SELECT 1 FROM (SELECT from_state, to_state, attempt, trigger FROM detent_transition_log
                      WHERE job_id = OLD.id ORDER BY n DESC LIMIT 1) last
       WHERE last.from_state = OLD.state AND last.to_state = NEW.state
         AND (last.trigger = 'repair'
              OR (last.attempt = OLD.attempt AND NEW.attempt = OLD.attempt AND NEW.ended = OLD.ended
                  AND NEW.lease_id IS OLD.lease_id AND NEW.leased_at IS OLD.leased_at
                  AND NEW.started_at IS OLD.started_at AND ((OLD.state = 'pending' AND NEW.state = 'cancelled') OR (OLD.state = 'failed' AND NEW.state = 'pending') OR (OLD.state = 'quarantined' AND NEW.state = 'pending') OR (OLD.state = 'cancelled' AND NEW.state = 'pending') OR (OLD.state = 'quarantined' AND NEW.state = 'cancelled') OR (OLD.state = 'failed' AND NEW.state = 'cancelled') OR (OLD.state = 'pending' AND NEW.state = 'quarantined') OR (OLD.state = 'failed' AND NEW.state = 'quarantined') OR (OLD.state = 'failed' AND NEW.state = 'succeeded') OR (OLD.state = 'quarantined' AND NEW.state = 'succeeded')))))
      THEN NULL
    WHEN (OLD.state = 'pending' AND NEW.state = 'cancelled') OR (OLD.state = 'failed' AND NEW.state = 'pending') OR (OLD.state = 'quarantined' AND NEW.state = 'pending') OR (OLD.state = 'cancelled' AND NEW.state = 'pending') OR (OLD.state = 'quarantined' AND NEW.state = 'cancelled') OR (OLD.state = 'failed' AND NEW.state = 'cancelled') OR (OLD.state = 'pending' AND NEW.state = 'quarantined') OR (OLD.state = 'failed' AND NEW.state = 'quarantined') OR (OLD.state = 'failed' AND NEW.state = 'succeeded') OR (OLD.state = 'quarantined' AND NEW.state = 'succeeded')
      THEN RAISE(ABORT, 'DT041 job: this move is made only together with its line in transition_log')
    WHEN OLD.state = NEW.state
      THEN RAISE(ABORT, 'DT041 job: attempts, lease, times and outcome change only together with its state')
    ELSE RAISE(ABORT, 'DT002 job: it cannot go from its state to that one in this way')
  END;
END;

-- When attempts were claimed, began, committed and ended, with their job's task, queue and tenant.
CREATE VIEW detent_attempt_times AS
  SELECT e.job_id, e.attempt, j.task, j.queue, j.tenant, e.outcome, e.worker, e.leased_at, e.started_at, e.committed_at,
         coalesce(e.done_at, e.aborted_at) AS ended_at,
         (e.started_at - e.leased_at) / 1000000.0 AS held_seconds,
         (coalesce(e.done_at, e.aborted_at) - e.started_at) / 1000000.0 AS run_seconds
    FROM detent_execution e JOIN detent_job j ON j.id = e.job_id;
