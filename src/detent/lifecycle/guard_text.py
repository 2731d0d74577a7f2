"""The fixed text around the generated conditions, one piece for each database."""

from __future__ import annotations

HEADER = """\
-- Guards of the record, generated from lifecycle {name} version {version} by `python -m detent.lifecycle.guard`.
-- A test keeps this file equal to the lifecycle: change the lifecycle, not this file.
"""

JOB_POSTGRES = """\
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
       AND NEW.started_at IS NOT DISTINCT FROM OLD.started_at AND ({logged}) THEN
      RETURN NEW;
    END IF;
  END IF;
  IF {logged} THEN
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
      {ordinary}
  ) IS NOT TRUE) EXECUTE FUNCTION detent.job_guard();

CREATE FUNCTION detent.job_refuse() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    RAISE EXCEPTION 'DT041 job %: {frozen} are written once', OLD.id USING ERRCODE = 'DT041';
  ELSIF TG_OP = 'INSERT' THEN
    RAISE EXCEPTION 'DT002 job % must begin in state {initial}, without attempts', NEW.id USING ERRCODE = 'DT002';
  ELSIF OLD.state IN ({at_rest}) AND OLD.finished_at < (SELECT max(h.before) FROM detent.horizon h) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'DT041 job % is not below the recorded horizon of retention', OLD.id USING ERRCODE = 'DT041';
END $$;

CREATE TRIGGER job_frozen BEFORE UPDATE OF {frozen} ON detent.job
  FOR EACH ROW WHEN ({thawed}) EXECUTE FUNCTION detent.job_refuse();

CREATE TRIGGER job_begins BEFORE INSERT ON detent.job
  FOR EACH ROW WHEN (NEW.state <> '{initial}' OR NEW.attempt <> 0 OR NEW.ended <> 0 OR NEW.spared <> 0
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
"""

KEEP_POSTGRES = """\
CREATE TRIGGER {table}_keep BEFORE UPDATE OR DELETE ON detent.{table} FOR EACH ROW EXECUTE FUNCTION detent.keep();
CREATE TRIGGER {table}_keep_all BEFORE TRUNCATE ON detent.{table} EXECUTE FUNCTION detent.keep();
"""

JOB_SQLITE = """\
CREATE TRIGGER detent_job_guard
  BEFORE UPDATE OF state, attempt, ended, spared, lease_id, leased_at, started_at, committed_at, finished_at,
    result, error
  ON detent_job
  FOR EACH ROW WHEN (
      {ordinary}
  ) IS NOT TRUE
BEGIN
  SELECT CASE
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
                  AND NEW.started_at IS OLD.started_at AND ({logged}))))
      THEN NULL
    WHEN {logged}
      THEN RAISE(ABORT, 'DT041 job: this move is made only together with its line in transition_log')
    WHEN OLD.state = NEW.state
      THEN RAISE(ABORT, 'DT041 job: attempts, lease, times and outcome change only together with its state')
    ELSE RAISE(ABORT, 'DT002 job: it cannot go from its state to that one in this way')
  END;
END;

CREATE TRIGGER detent_job_frozen BEFORE UPDATE OF {frozen} ON detent_job
  FOR EACH ROW WHEN {thawed}
BEGIN
  SELECT RAISE(ABORT, 'DT041 job: {frozen} are written once');
END;

-- differs: a REPLACE would delete the old row without asking, so an id that is there is refused before.
CREATE TRIGGER detent_job_begins BEFORE INSERT ON detent_job
  FOR EACH ROW WHEN NEW.state <> '{initial}' OR NEW.attempt <> 0 OR NEW.ended <> 0 OR NEW.spared <> 0
    OR NEW.lease_id IS NOT NULL OR NEW.leased_at IS NOT NULL
    OR NEW.started_at IS NOT NULL OR NEW.committed_at IS NOT NULL
    OR EXISTS (SELECT 1 FROM detent_job WHERE id = NEW.id)
BEGIN
  SELECT RAISE(ABORT, 'DT002 job: it must begin once, in state {initial}, without attempts');
END;

CREATE TRIGGER detent_job_goes BEFORE DELETE ON detent_job
  FOR EACH ROW WHEN (
      OLD.state IN ({at_rest}) AND OLD.finished_at < (SELECT max(before) FROM detent_horizon)
  ) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT041 job: it is not below the recorded horizon of retention');
END;
"""

KEEP_SQLITE = """\
CREATE TRIGGER detent_{table}_keep BEFORE UPDATE ON detent_{table}
BEGIN
  SELECT RAISE(ABORT, 'DT041 {table} is append-only: UPDATE refused');
END;
CREATE TRIGGER detent_{table}_goes BEFORE DELETE ON detent_{table} WHEN ({unless}) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT041 {table} is append-only: DELETE refused');
END;
CREATE TRIGGER detent_{table}_begins BEFORE INSERT ON detent_{table}
  WHEN {there}
BEGIN
  SELECT RAISE(ABORT, 'DT041 {table} is append-only: REPLACE refused');
END;
"""

# The log's own number is given at the insert, so a REPLACE is seen by the number it names.
KEEP_SQLITE_LOG = """\
CREATE TRIGGER detent_transition_log_keep BEFORE UPDATE ON detent_transition_log
BEGIN
  SELECT RAISE(ABORT, 'DT041 transition_log is append-only: UPDATE refused');
END;
CREATE TRIGGER detent_transition_log_goes BEFORE DELETE ON detent_transition_log WHEN ({unless}) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT041 transition_log is append-only: DELETE refused');
END;
CREATE TRIGGER detent_transition_log_begins BEFORE INSERT ON detent_transition_log
  WHEN NEW.n IS NOT NULL AND EXISTS (SELECT 1 FROM detent_transition_log WHERE n = NEW.n)
BEGIN
  SELECT RAISE(ABORT, 'DT041 transition_log is append-only: REPLACE refused');
END;
"""

# The guard is called only where the state or the id changes. The condition compares the columns as text, byte by byte,
# and does not depend on which columns the UPDATE names: a trigger of the user's own may have changed them.
ENTITY_POSTGRES = """\
CREATE OR REPLACE TRIGGER {trigger}_guard BEFORE UPDATE ON {table}
  FOR EACH ROW WHEN (OLD.{state}::text COLLATE "C" IS DISTINCT FROM NEW.{state}::text COLLATE "C"
    OR OLD.{id}::text COLLATE "C" IS DISTINCT FROM NEW.{id}::text COLLATE "C")
  EXECUTE FUNCTION detent.entity_guard({name}, {id_literal}, {state_literal}, {initial}, {pairs_literal});
CREATE OR REPLACE TRIGGER {trigger}_begins BEFORE INSERT ON {table}
  FOR EACH ROW EXECUTE FUNCTION detent.entity_guard({name}, {id_literal}, {state_literal}, {initial}, {pairs_literal});
"""

ENTITY_SQLITE = """\
DROP TRIGGER IF EXISTS {trigger}_guard;
CREATE TRIGGER {trigger}_guard BEFORE UPDATE OF {state} ON {table} FOR EACH ROW WHEN OLD.{state} IS NOT NEW.{state}
BEGIN
  SELECT CASE
    WHEN ({pairs}) IS NOT TRUE THEN RAISE(ABORT, 'DT002 this entity cannot go from its state to that one')
    WHEN EXISTS (
      SELECT 1 FROM (SELECT from_state, to_state FROM detent_transition_log
                      WHERE job_id IS NULL AND entity = {name} AND entity_id = CAST(OLD.{id} AS TEXT)
                      ORDER BY n DESC LIMIT 1) last
       WHERE last.from_state = OLD.{state} AND last.to_state = NEW.{state})
      THEN NULL
    ELSE RAISE(ABORT, 'DT041 this move is made only together with its line in transition_log')
  END;
END;
DROP TRIGGER IF EXISTS {trigger}_frozen;
CREATE TRIGGER {trigger}_frozen BEFORE UPDATE OF {id} ON {table} FOR EACH ROW WHEN OLD.{id} IS NOT NEW.{id}
BEGIN
  SELECT RAISE(ABORT, 'DT041 the id of this entity is written once');
END;
DROP TRIGGER IF EXISTS {trigger}_begins;
CREATE TRIGGER {trigger}_begins BEFORE INSERT ON {table} FOR EACH ROW
  WHEN NEW.{state} IS NOT {initial} OR EXISTS (SELECT 1 FROM {table} WHERE {id} = NEW.{id})
BEGIN
  SELECT RAISE(ABORT, 'DT002 this entity must begin once, in its initial state');
END;
DROP TRIGGER IF EXISTS {trigger}_record;
CREATE TRIGGER {trigger}_record AFTER INSERT ON {table} FOR EACH ROW
BEGIN
  INSERT INTO detent_transition_log (entity, entity_id, from_state, to_state, trigger, actor, at)
    VALUES ({name}, CAST(NEW.{id} AS TEXT), NULL, {initial}, 'create', 'database',
            CAST(strftime('%s', 'now') AS INTEGER) * 1000000
              + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000);
END;
"""
