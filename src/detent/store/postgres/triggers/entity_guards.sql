-- The guard of users' own tables.

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
