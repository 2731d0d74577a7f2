-- Attempts begin when their function is called: by `python -m detent.lifecycle.guard_starts`.
-- A test keeps this file equal to the lifecycle: change the lifecycle, not this file.
--
-- An ending says when the function was called (job_finish_v2, job_abort_v2, lease_renew_v2). It may correct a start that an event or a
-- renewal had put on record too late.

DROP TRIGGER job_guard ON detent.job;
CREATE TRIGGER job_guard
  AFTER UPDATE OF state, attempt, ended, spared, lease_id, leased_at, started_at, committed_at, finished_at,
    result, error
  ON detent.job
  FOR EACH ROW WHEN ((
      (OLD.state = 'running' AND NEW.attempt = OLD.attempt AND NEW.lease_id = OLD.lease_id AND NEW.leased_at = OLD.leased_at AND NEW.spared >= OLD.spared AND (OLD.started_at IS NULL OR NEW.started_at = OLD.started_at OR (NEW.state <> 'running' AND NEW.started_at BETWEEN OLD.leased_at AND OLD.started_at)) AND (OLD.committed_at IS NULL OR NEW.committed_at = OLD.committed_at))
   OR (OLD.state = 'pending' AND NEW.state = 'running' AND NEW.ended = OLD.ended AND NEW.spared = OLD.spared AND NEW.committed_at IS NULL AND NEW.started_at IS NULL)
  ) IS NOT TRUE) EXECUTE FUNCTION detent.job_guard();

-- When attempts were claimed, began, committed and ended, with their job's task, queue and tenant.
CREATE VIEW detent.attempt_times AS
  SELECT e.job_id, e.attempt, j.task, j.queue, j.tenant, e.outcome, e.worker, e.leased_at, e.started_at, e.committed_at,
         coalesce(e.done_at, e.aborted_at) AS ended_at,
         extract(epoch FROM e.started_at - e.leased_at)::double precision AS held_seconds,
         extract(epoch FROM coalesce(e.done_at, e.aborted_at) - e.started_at)::double precision AS run_seconds
    FROM detent.execution e JOIN detent.job j ON j.id = e.job_id;
