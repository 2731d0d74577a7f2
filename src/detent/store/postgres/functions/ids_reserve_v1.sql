-- ids_reserve: reserve consecutive ids for ever.
-- takes:   how many
-- gives:   the first of them, above all that are in use: a restored database may count from the beginning again
-- locks:   an advisory lock, only until the sequence has moved: a caller's open transaction holds nobody up
-- refuses: nothing
-- differs: a sequence does not roll back, so ids of a transaction that failed are lost; SQLite's come back
CREATE OR REPLACE FUNCTION detent.ids_reserve_v1(p_count integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  first bigint;
  used  bigint := greatest((SELECT max(j.id) FROM detent.job j), (SELECT max(l.id) FROM detent.lease l), 0);
BEGIN
  BEGIN
    PERFORM pg_advisory_xact_lock(7310868735422392933);
    first := nextval('detent.id_seq');
    IF first <= used THEN
      first := used + 1;
      PERFORM setval('detent.id_seq', first);
    END IF;
    IF p_count > 1 THEN
      PERFORM setval('detent.id_seq', first + p_count - 1);
    END IF;
    RAISE SQLSTATE 'DT000';  -- gives the lock back; the sequence keeps its place
  EXCEPTION WHEN SQLSTATE 'DT000' THEN
    RETURN first;
  END;
END $$;
