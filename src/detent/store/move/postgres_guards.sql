-- What closes a database while it moves, and for good when it has moved.

-- The triggers that call it exist only while the database is closed: `database_closed` on every table. The session that moves the
-- database names its move in the setting detent.database_move.
CREATE OR REPLACE FUNCTION detent.database_closed() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  m detent.database_move;
BEGIN
  SELECT d.* INTO m FROM detent.database_move d WHERE d.state <> 'arrived' ORDER BY d.direction DESC LIMIT 1;
  IF m.move_id IS NULL OR m.move_id = current_setting('detent.database_move', true) THEN
    RETURN NULL;
  END IF;
  RAISE EXCEPTION 'DT048 database: % % since %', m.state, m.place,
      to_char(coalesce(m.ended_at, m.began_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    USING ERRCODE = 'DT048';
END $$;
