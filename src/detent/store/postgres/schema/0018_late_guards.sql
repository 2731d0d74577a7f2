-- oldest code: 17
-- The guards of jobs after the change instead of before it: by `python -m detent.lifecycle.guard_late`.
-- A test keeps this file equal to the lifecycle: change the lifecycle, not this file.
--
-- A refusal takes the whole statement back all the same. Asked before, PostgreSQL locks every row first, and writes that to its log.
-- `detent verify` and `detent repair` of an older Detent take these for missing: use those of this one.

DROP TRIGGER job_guard ON detent.job;
CREATE TRIGGER job_guard
  AFTER UPDATE OF state, attempt, ended, spared, lease_id, leased_at, started_at, committed_at, finished_at,
    result, error
  ON detent.job
  FOR EACH ROW WHEN ((
      (OLD.state = 'running' AND NEW.attempt = OLD.attempt AND NEW.lease_id = OLD.lease_id AND NEW.leased_at = OLD.leased_at AND NEW.spared >= OLD.spared AND (OLD.started_at IS NULL OR NEW.started_at = OLD.started_at) AND (OLD.committed_at IS NULL OR NEW.committed_at = OLD.committed_at))
   OR (OLD.state = 'pending' AND NEW.state = 'running' AND NEW.ended = OLD.ended AND NEW.spared = OLD.spared AND NEW.committed_at IS NULL AND NEW.started_at IS NULL)
  ) IS NOT TRUE) EXECUTE FUNCTION detent.job_guard();

DROP TRIGGER job_frozen ON detent.job;
CREATE TRIGGER job_frozen AFTER UPDATE OF id, tenant, task, payload, run_id, nonce, created_at, attempts_max, dead_letter, idempotent ON detent.job
  FOR EACH ROW WHEN (NEW.id IS DISTINCT FROM OLD.id OR NEW.tenant IS DISTINCT FROM OLD.tenant OR NEW.task IS DISTINCT FROM OLD.task OR NEW.payload IS DISTINCT FROM OLD.payload OR NEW.run_id IS DISTINCT FROM OLD.run_id OR NEW.nonce IS DISTINCT FROM OLD.nonce OR NEW.created_at IS DISTINCT FROM OLD.created_at OR NEW.attempts_max IS DISTINCT FROM OLD.attempts_max OR NEW.dead_letter IS DISTINCT FROM OLD.dead_letter OR NEW.idempotent IS DISTINCT FROM OLD.idempotent) EXECUTE FUNCTION detent.job_refuse();
