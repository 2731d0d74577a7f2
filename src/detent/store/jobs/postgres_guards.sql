-- Guards of jobs: the database refuses every move that the lifecycle does not declare.

CREATE OR REPLACE FUNCTION detent.job_guard() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  last record;
BEGIN
  IF OLD.state = 'succeeded' AND NEW.state = 'succeeded' AND NEW.result IS NULL AND OLD.result_dropped_at IS NULL AND NEW.result_dropped_at IS NOT NULL
     AND NEW.error IS NOT DISTINCT FROM OLD.error AND NEW.finished_at IS NOT DISTINCT FROM OLD.finished_at AND NEW.attempt IS NOT DISTINCT FROM OLD.attempt AND NEW.ended IS NOT DISTINCT FROM OLD.ended AND NEW.spared IS NOT DISTINCT FROM OLD.spared AND NEW.lease_id IS NOT DISTINCT FROM OLD.lease_id AND NEW.leased_at IS NOT DISTINCT FROM OLD.leased_at AND NEW.started_at IS NOT DISTINCT FROM OLD.started_at AND NEW.committed_at IS NOT DISTINCT FROM OLD.committed_at THEN
    RETURN NEW;
  END IF;
  IF OLD.committed_at IS NOT NULL AND NEW.committed_at IS DISTINCT FROM OLD.committed_at THEN
    RAISE EXCEPTION 'DT041 job %: committed_at is written once', OLD.id USING ERRCODE = 'DT041';
  END IF;
  IF NEW.attempt < OLD.attempt OR NEW.ended < OLD.ended OR NEW.spared < OLD.spared THEN
    RAISE EXCEPTION 'DT041 job %: attempt, ended and spared only grow', OLD.id USING ERRCODE = 'DT041';
  END IF;
  SELECT l.from_state, l.to_state, l.attempt, l.trigger INTO last
    FROM detent.transition_log l WHERE l.job_id = OLD.id ORDER BY l.n DESC LIMIT 1;
  IF FOUND AND last.from_state = OLD.state AND last.to_state = NEW.state THEN
    IF last.trigger = 'repair' THEN
      RETURN NEW;
    END IF;
    IF last.attempt = OLD.attempt AND NEW.attempt = OLD.attempt AND NEW.ended = OLD.ended
       AND NEW.lease_id IS NOT DISTINCT FROM OLD.lease_id AND NEW.leased_at IS NOT DISTINCT FROM OLD.leased_at
       AND NEW.started_at IS NOT DISTINCT FROM OLD.started_at AND ({{job.logged}})
       AND (OLD.state <> 'pending' OR NEW.state NOT IN ('succeeded', 'failed') OR OLD.task = 'detent.graph') THEN
      RETURN NEW;
    END IF;
  END IF;
  IF {{job.logged}} THEN
    RAISE EXCEPTION 'DT041 job % may go from % to % only together with its line in transition_log',
      OLD.id, OLD.state, NEW.state USING ERRCODE = 'DT041';
  END IF;
  IF OLD.state = NEW.state THEN
    RAISE EXCEPTION 'DT041 job %: attempts, lease, times and outcome change only together with its state', OLD.id
      USING ERRCODE = 'DT041';
  END IF;
  RAISE EXCEPTION 'DT002 job % cannot go from % to % in this way', OLD.id, OLD.state, NEW.state USING ERRCODE = 'DT002';
END $$;

CREATE OR REPLACE TRIGGER job_guard
  AFTER UPDATE OF state, attempt, ended, spared, lease_id, leased_at, started_at, committed_at, finished_at,
    result, error
  ON detent.job
  FOR EACH ROW WHEN ((
      (OLD.state = 'running'{{job.ordinary_ends}} AND NEW.attempt = OLD.attempt
          AND NEW.lease_id = OLD.lease_id AND NEW.leased_at = OLD.leased_at
          AND NEW.spared >= OLD.spared
          AND (OLD.started_at IS NULL OR NEW.started_at = OLD.started_at OR (NEW.state <> 'running' AND NEW.started_at BETWEEN OLD.leased_at AND OLD.started_at))
          AND (OLD.committed_at IS NULL OR NEW.committed_at = OLD.committed_at))
   OR (({{job.claims}}) AND NEW.ended = OLD.ended AND NEW.spared = OLD.spared AND NEW.committed_at IS NULL AND NEW.started_at IS NULL)
  ) IS NOT TRUE) EXECUTE FUNCTION detent.job_guard();

CREATE OR REPLACE FUNCTION detent.job_refuse() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    RAISE EXCEPTION 'DT041 job %: id, tenant, task, payload, run_id, parent_id, nonce, created_at, attempts_max, dead_letter, idempotent are written once', OLD.id USING ERRCODE = 'DT041';
  ELSIF TG_OP = 'INSERT' THEN
    RAISE EXCEPTION 'DT002 job % must begin in state {{job.initial}}, without attempts', NEW.id USING ERRCODE = 'DT002';
  ELSIF OLD.state IN ({{job.rests}}) AND OLD.finished_at < (SELECT max(h.before) FROM detent.horizon h) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'DT041 job % is not below the recorded horizon of retention', OLD.id USING ERRCODE = 'DT041';
END $$;

CREATE OR REPLACE TRIGGER job_frozen AFTER UPDATE OF id, tenant, task, payload, run_id, parent_id, nonce, created_at, attempts_max, dead_letter, idempotent ON detent.job
  FOR EACH ROW WHEN (NEW.id IS DISTINCT FROM OLD.id OR NEW.tenant IS DISTINCT FROM OLD.tenant OR NEW.task IS DISTINCT FROM OLD.task OR NEW.payload IS DISTINCT FROM OLD.payload OR NEW.run_id IS DISTINCT FROM OLD.run_id OR NEW.parent_id IS DISTINCT FROM OLD.parent_id OR NEW.nonce IS DISTINCT FROM OLD.nonce OR NEW.created_at IS DISTINCT FROM OLD.created_at OR NEW.attempts_max IS DISTINCT FROM OLD.attempts_max OR NEW.dead_letter IS DISTINCT FROM OLD.dead_letter OR NEW.idempotent IS DISTINCT FROM OLD.idempotent) EXECUTE FUNCTION detent.job_refuse();

CREATE OR REPLACE TRIGGER job_begins BEFORE INSERT ON detent.job
  FOR EACH ROW WHEN (NEW.state <> '{{job.initial}}' OR NEW.attempt <> 0 OR NEW.ended <> 0 OR NEW.spared <> 0
    OR NEW.lease_id IS NOT NULL OR NEW.leased_at IS NOT NULL
    OR NEW.started_at IS NOT NULL OR NEW.committed_at IS NOT NULL)
  EXECUTE FUNCTION detent.job_refuse();

CREATE OR REPLACE TRIGGER job_goes BEFORE DELETE ON detent.job FOR EACH ROW EXECUTE FUNCTION detent.job_refuse();

CREATE OR REPLACE FUNCTION detent.effect_guard() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'DT041 job %: effect_evidence is set by the attempt that is in progress, and stays', OLD.id
    USING ERRCODE = 'DT041';
END $$;

CREATE OR REPLACE TRIGGER job_effect AFTER UPDATE OF effect_evidence ON detent.job
  FOR EACH ROW WHEN (NEW.effect_evidence IS DISTINCT FROM OLD.effect_evidence
    AND (NEW.effect_evidence IS NULL OR OLD.state <> 'running' OR NEW.state <> 'running' OR NEW.started_at IS NULL))
  EXECUTE FUNCTION detent.effect_guard();

CREATE OR REPLACE FUNCTION detent.result_guard() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF OLD.result_dropped_at IS NULL AND OLD.result IS NOT NULL AND EXISTS (
      SELECT 1 FROM detent.task_times s
       WHERE s.task = OLD.task AND NEW.result_dropped_at >= OLD.finished_at + make_interval(secs => s.result_ttl)) THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'DT041 job %: a result is dropped once, when the time that its task says is over', OLD.id
    USING ERRCODE = 'DT041';
END $$;

CREATE OR REPLACE TRIGGER job_result AFTER UPDATE OF result_dropped_at ON detent.job
  FOR EACH ROW WHEN (NEW.result_dropped_at IS DISTINCT FROM OLD.result_dropped_at)
  EXECUTE FUNCTION detent.result_guard();
