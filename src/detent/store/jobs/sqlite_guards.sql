-- Guards of jobs: the database refuses every move that the lifecycle does not declare.

-- differs: a REPLACE would delete the old row without asking, so an id that is there is refused before.
CREATE TRIGGER detent_job_begins BEFORE INSERT ON detent_job
  FOR EACH ROW WHEN NEW.state <> '{{job.initial}}' OR NEW.attempt <> 0 OR NEW.ended <> 0 OR NEW.spared <> 0
    OR NEW.lease_id IS NOT NULL OR NEW.leased_at IS NOT NULL
    OR NEW.started_at IS NOT NULL OR NEW.committed_at IS NOT NULL
    OR EXISTS (SELECT 1 FROM detent_job WHERE id = NEW.id)
BEGIN
  SELECT RAISE(ABORT, 'DT002 job: it must begin once, in state {{job.initial}}, without attempts');
END;

CREATE TRIGGER detent_job_goes BEFORE DELETE ON detent_job
  FOR EACH ROW WHEN (
      OLD.state IN ({{job.rests}}) AND OLD.finished_at < (SELECT max(before) FROM detent_horizon)
  ) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT041 job: it is not below the recorded horizon of retention');
END;

CREATE TRIGGER detent_job_frozen AFTER UPDATE OF id, tenant, task, payload, run_id, parent_id, nonce, created_at, attempts_max, dead_letter, idempotent ON detent_job
  FOR EACH ROW WHEN NEW.id IS NOT OLD.id OR NEW.tenant IS NOT OLD.tenant OR NEW.task IS NOT OLD.task OR NEW.payload IS NOT OLD.payload OR NEW.run_id IS NOT OLD.run_id OR NEW.parent_id IS NOT OLD.parent_id OR NEW.nonce IS NOT OLD.nonce OR NEW.created_at IS NOT OLD.created_at OR NEW.attempts_max IS NOT OLD.attempts_max OR NEW.dead_letter IS NOT OLD.dead_letter OR NEW.idempotent IS NOT OLD.idempotent
BEGIN
  SELECT RAISE(ABORT, 'DT041 job: id, tenant, task, payload, run_id, parent_id, nonce, created_at, attempts_max, dead_letter, idempotent are written once');
END;

CREATE TRIGGER detent_job_effect AFTER UPDATE OF effect_evidence ON detent_job
WHEN NEW.effect_evidence IS NOT OLD.effect_evidence
  AND (NEW.effect_evidence IS NULL OR OLD.state <> 'running' OR NEW.state <> 'running' OR NEW.started_at IS NULL)
BEGIN
  SELECT RAISE(ABORT, 'DT041 effect_evidence of a job is set by the attempt that is in progress, and stays');
END;

CREATE TRIGGER detent_job_result AFTER UPDATE OF result_dropped_at ON detent_job
WHEN NEW.result_dropped_at IS NOT OLD.result_dropped_at
  AND (OLD.result_dropped_at IS NULL AND OLD.result IS NOT NULL AND EXISTS (
    SELECT 1 FROM detent_task_times s
     WHERE s.task = OLD.task AND NEW.result_dropped_at >= OLD.finished_at + s.result_ttl * 1000000)) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT041 job: a result is dropped once, when the time that its task says is over');
END;

CREATE TRIGGER detent_job_guard
  AFTER UPDATE OF state, attempt, ended, spared, lease_id, leased_at, started_at, committed_at, finished_at,
    result, error
  ON detent_job
  FOR EACH ROW WHEN (
      (OLD.state = 'running'{{job.ordinary_ends}} AND NEW.attempt = OLD.attempt
          AND NEW.lease_id = OLD.lease_id AND NEW.leased_at = OLD.leased_at
          AND NEW.spared >= OLD.spared
          AND (OLD.started_at IS NULL OR NEW.started_at = OLD.started_at OR (NEW.state <> 'running' AND NEW.started_at BETWEEN OLD.leased_at AND OLD.started_at))
          AND (OLD.committed_at IS NULL OR NEW.committed_at = OLD.committed_at))
   OR (({{job.claims}}) AND NEW.ended = OLD.ended AND NEW.spared = OLD.spared AND NEW.committed_at IS NULL AND NEW.started_at IS NULL)
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
                  AND NEW.started_at IS OLD.started_at AND ({{job.logged}})
                  AND (OLD.state <> 'pending' OR NEW.state NOT IN ('succeeded', 'failed') OR OLD.task = 'detent.graph'))))
      THEN NULL
    WHEN {{job.logged}}
      THEN RAISE(ABORT, 'DT041 job: this move is made only together with its line in transition_log')
    WHEN OLD.state = NEW.state
      THEN RAISE(ABORT, 'DT041 job: attempts, lease, times and outcome change only together with its state')
    ELSE RAISE(ABORT, 'DT002 job: it cannot go from its state to that one in this way')
  END;
END;
