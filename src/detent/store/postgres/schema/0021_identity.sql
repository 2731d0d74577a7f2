-- oldest code: 17
-- The identity of the database, the version of each lifecycle that is attached to a table, and a cheaper guard for those tables.
--
-- `identity` makes the effect keys of this database differ from those of every other database. A row holds for the jobs and
-- runs with ids from `first_id` on, so a new identity does not change the key of a job that exists. Rows are only added.
-- `lifecycle` keeps the version of each attached lifecycle, so that an older program cannot take a newer one back.

CREATE TABLE detent.identity (
  n         integer     NOT NULL,
  identity  text        NOT NULL,
  first_id  bigint      NOT NULL,
  made_by   text        NOT NULL,
  reason    text,
  made_at   timestamptz NOT NULL,
  CONSTRAINT identity_pkey PRIMARY KEY (n),
  CONSTRAINT identity_is_long CHECK (length(identity) = 32)
);
INSERT INTO detent.identity (n, identity, first_id, made_by, made_at)
VALUES (1, replace(gen_random_uuid()::text, '-', ''), 0, 'migrate', detent.clock());

CREATE FUNCTION detent.identity_grows() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM detent.identity i WHERE i.n >= NEW.n OR i.first_id >= NEW.first_id) THEN
    RAISE EXCEPTION 'DT041 identity: numbers and first ids only grow' USING ERRCODE = 'DT041';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER identity_begins BEFORE INSERT ON detent.identity FOR EACH ROW EXECUTE FUNCTION detent.identity_grows();
CREATE TRIGGER identity_keep BEFORE UPDATE OR DELETE ON detent.identity FOR EACH ROW EXECUTE FUNCTION detent.keep();
CREATE TRIGGER identity_keep_all BEFORE TRUNCATE ON detent.identity EXECUTE FUNCTION detent.keep();

CREATE TABLE detent.lifecycle (
  name        text        NOT NULL,
  version     integer     NOT NULL,
  table_name  text        NOT NULL,
  attached_at timestamptz NOT NULL,
  CONSTRAINT lifecycle_pkey PRIMARY KEY (name)
);

-- The guard of users' own tables: lifecycle, id column, state column, initial state, declared pairs. It is called for an
-- INSERT, and for an UPDATE that changes the state or the id; each row is turned into JSON once.
CREATE OR REPLACE FUNCTION detent.entity_guard() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  entity   text := TG_ARGV[0];
  now_row  jsonb := to_jsonb(NEW);
  id       text := now_row ->> TG_ARGV[1];
  now_is   text := now_row ->> TG_ARGV[2];
  was_row  jsonb;
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
  was_row := to_jsonb(OLD);
  was := was_row ->> TG_ARGV[2];
  IF was_row ->> TG_ARGV[1] IS DISTINCT FROM id THEN
    RAISE EXCEPTION 'DT041 % %: its id is written once', entity, was_row ->> TG_ARGV[1] USING ERRCODE = 'DT041';
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
