-- The guard of jobs with a door for results whose time is over: by `python -m detent.lifecycle.guard_results`.
-- A test keeps this file equal to the lifecycle: change the lifecycle, not this file.

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
