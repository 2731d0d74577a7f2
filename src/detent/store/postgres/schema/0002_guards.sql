-- Guards of the record, generated from lifecycle job version 1 by `python -m detent.lifecycle.guard`.
-- A test keeps this file equal to the lifecycle: change the lifecycle, not this file.

CREATE FUNCTION detent.job_guard() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  last record;
BEGIN
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
       AND NEW.started_at IS NOT DISTINCT FROM OLD.started_at AND ((OLD.state = 'pending' AND NEW.state = 'cancelled') OR (OLD.state = 'failed' AND NEW.state = 'pending') OR (OLD.state = 'quarantined' AND NEW.state = 'pending') OR (OLD.state = 'cancelled' AND NEW.state = 'pending') OR (OLD.state = 'quarantined' AND NEW.state = 'cancelled') OR (OLD.state = 'failed' AND NEW.state = 'cancelled') OR (OLD.state = 'pending' AND NEW.state = 'quarantined') OR (OLD.state = 'failed' AND NEW.state = 'quarantined') OR (OLD.state = 'failed' AND NEW.state = 'succeeded') OR (OLD.state = 'quarantined' AND NEW.state = 'succeeded')) THEN
      RETURN NEW;
    END IF;
  END IF;
  IF (OLD.state = 'pending' AND NEW.state = 'cancelled') OR (OLD.state = 'failed' AND NEW.state = 'pending') OR (OLD.state = 'quarantined' AND NEW.state = 'pending') OR (OLD.state = 'cancelled' AND NEW.state = 'pending') OR (OLD.state = 'quarantined' AND NEW.state = 'cancelled') OR (OLD.state = 'failed' AND NEW.state = 'cancelled') OR (OLD.state = 'pending' AND NEW.state = 'quarantined') OR (OLD.state = 'failed' AND NEW.state = 'quarantined') OR (OLD.state = 'failed' AND NEW.state = 'succeeded') OR (OLD.state = 'quarantined' AND NEW.state = 'succeeded') THEN
    RAISE EXCEPTION 'DT041 job % may go from % to % only together with its line in transition_log',
      OLD.id, OLD.state, NEW.state USING ERRCODE = 'DT041';
  END IF;
  IF OLD.state = NEW.state THEN
    RAISE EXCEPTION 'DT041 job %: attempts, lease, times and outcome change only together with its state', OLD.id
      USING ERRCODE = 'DT041';
  END IF;
  RAISE EXCEPTION 'DT002 job % cannot go from % to % in this way', OLD.id, OLD.state, NEW.state USING ERRCODE = 'DT002';
END $$;

CREATE TRIGGER job_guard
  BEFORE UPDATE OF state, attempt, ended, spared, lease_id, leased_at, started_at, committed_at, finished_at,
    result, error
  ON detent.job
  FOR EACH ROW WHEN ((
      (OLD.state = 'running' AND (NEW.state = 'succeeded' OR NEW.state = 'pending' OR NEW.state = 'failed' OR NEW.state = 'cancelled' OR NEW.state = 'quarantined' OR NEW.state = 'running') AND NEW.attempt = OLD.attempt AND NEW.lease_id = OLD.lease_id AND NEW.leased_at = OLD.leased_at AND NEW.spared >= OLD.spared AND (OLD.started_at IS NULL OR NEW.started_at = OLD.started_at) AND (OLD.committed_at IS NULL OR NEW.committed_at = OLD.committed_at))
   OR (OLD.state = 'pending' AND NEW.state = 'running' AND NEW.ended = OLD.ended AND NEW.spared = OLD.spared AND NEW.committed_at IS NULL AND NEW.started_at IS NULL)
  ) IS NOT TRUE) EXECUTE FUNCTION detent.job_guard();

CREATE FUNCTION detent.job_refuse() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    RAISE EXCEPTION 'DT041 job %: id, tenant, task, payload, run_id, nonce, created_at, attempts_max, dead_letter, idempotent are written once', OLD.id USING ERRCODE = 'DT041';
  ELSIF TG_OP = 'INSERT' THEN
    RAISE EXCEPTION 'DT002 job % must begin in state pending, without attempts', NEW.id USING ERRCODE = 'DT002';
  ELSIF OLD.state IN ('cancelled', 'failed', 'quarantined', 'succeeded') AND OLD.finished_at < (SELECT max(h.before) FROM detent.horizon h) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'DT041 job % is not below the recorded horizon of retention', OLD.id USING ERRCODE = 'DT041';
END $$;

CREATE TRIGGER job_frozen BEFORE UPDATE OF id, tenant, task, payload, run_id, nonce, created_at, attempts_max, dead_letter, idempotent ON detent.job
  FOR EACH ROW WHEN (NEW.id IS DISTINCT FROM OLD.id OR NEW.tenant IS DISTINCT FROM OLD.tenant OR NEW.task IS DISTINCT FROM OLD.task OR NEW.payload IS DISTINCT FROM OLD.payload OR NEW.run_id IS DISTINCT FROM OLD.run_id OR NEW.nonce IS DISTINCT FROM OLD.nonce OR NEW.created_at IS DISTINCT FROM OLD.created_at OR NEW.attempts_max IS DISTINCT FROM OLD.attempts_max OR NEW.dead_letter IS DISTINCT FROM OLD.dead_letter OR NEW.idempotent IS DISTINCT FROM OLD.idempotent) EXECUTE FUNCTION detent.job_refuse();

CREATE TRIGGER job_begins BEFORE INSERT ON detent.job
  FOR EACH ROW WHEN (NEW.state <> 'pending' OR NEW.attempt <> 0 OR NEW.ended <> 0 OR NEW.spared <> 0
    OR NEW.lease_id IS NOT NULL OR NEW.leased_at IS NOT NULL
    OR NEW.started_at IS NOT NULL OR NEW.committed_at IS NOT NULL)
  EXECUTE FUNCTION detent.job_refuse();

CREATE TRIGGER job_goes BEFORE DELETE ON detent.job FOR EACH ROW EXECUTE FUNCTION detent.job_refuse();

CREATE FUNCTION detent.keep() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF TG_OP = 'DELETE' AND TG_TABLE_NAME IN ('execution', 'event', 'transition_log') THEN
    IF OLD.job_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = OLD.job_id) THEN
      RETURN OLD;
    END IF;
  END IF;
  RAISE EXCEPTION 'DT041 % is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'DT041';
END $$;

CREATE TRIGGER job_keep_all BEFORE TRUNCATE ON detent.job EXECUTE FUNCTION detent.keep();

-- The guard of users' own tables: lifecycle, id column, state column, initial state, declared pairs.
CREATE FUNCTION detent.entity_guard() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  entity   text := TG_ARGV[0];
  id       text := to_jsonb(NEW) ->> TG_ARGV[1];
  now_is   text := to_jsonb(NEW) ->> TG_ARGV[2];
  was      text;
  last     record;
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF now_is IS DISTINCT FROM TG_ARGV[3] THEN
      RAISE EXCEPTION 'DT002 % % must begin in state %', entity, id, TG_ARGV[3] USING ERRCODE = 'DT002';
    END IF;
    INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, at)
      VALUES (entity, id, NULL, now_is, 'create', 'database', detent.clock());
    RETURN NEW;
  END IF;
  was := to_jsonb(OLD) ->> TG_ARGV[2];
  IF to_jsonb(OLD) ->> TG_ARGV[1] IS DISTINCT FROM id THEN
    RAISE EXCEPTION 'DT041 % %: its id is written once', entity, to_jsonb(OLD) ->> TG_ARGV[1] USING ERRCODE = 'DT041';
  END IF;
  IF was IS NOT DISTINCT FROM now_is THEN
    RETURN NEW;
  END IF;
  IF NOT (was || '>' || now_is) = ANY (string_to_array(TG_ARGV[4], ',')) THEN
    RAISE EXCEPTION 'DT002 % % cannot go from % to %', entity, id, was, now_is USING ERRCODE = 'DT002';
  END IF;
  SELECT l.from_state, l.to_state INTO last
    FROM detent.transition_log l
   WHERE l.job_id IS NULL AND l.entity = TG_ARGV[0] AND l.entity_id = id ORDER BY l.n DESC LIMIT 1;
  IF FOUND AND last.from_state = was AND last.to_state = now_is THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'DT041 % % may go from % to % only together with its line in transition_log', entity, id, was, now_is
    USING ERRCODE = 'DT041';
END $$;
REVOKE ALL ON FUNCTION detent.entity_guard() FROM PUBLIC;

CREATE TRIGGER execution_keep BEFORE UPDATE OR DELETE ON detent.execution FOR EACH ROW EXECUTE FUNCTION detent.keep();
CREATE TRIGGER execution_keep_all BEFORE TRUNCATE ON detent.execution EXECUTE FUNCTION detent.keep();

CREATE TRIGGER event_keep BEFORE UPDATE OR DELETE ON detent.event FOR EACH ROW EXECUTE FUNCTION detent.keep();
CREATE TRIGGER event_keep_all BEFORE TRUNCATE ON detent.event EXECUTE FUNCTION detent.keep();

CREATE TRIGGER transition_log_keep BEFORE UPDATE OR DELETE ON detent.transition_log FOR EACH ROW EXECUTE FUNCTION detent.keep();
CREATE TRIGGER transition_log_keep_all BEFORE TRUNCATE ON detent.transition_log EXECUTE FUNCTION detent.keep();

CREATE TRIGGER horizon_keep BEFORE UPDATE OR DELETE ON detent.horizon FOR EACH ROW EXECUTE FUNCTION detent.keep();
CREATE TRIGGER horizon_keep_all BEFORE TRUNCATE ON detent.horizon EXECUTE FUNCTION detent.keep();

CREATE TRIGGER migration_keep BEFORE UPDATE OR DELETE ON detent.migration FOR EACH ROW EXECUTE FUNCTION detent.keep();
CREATE TRIGGER migration_keep_all BEFORE TRUNCATE ON detent.migration EXECUTE FUNCTION detent.keep();
