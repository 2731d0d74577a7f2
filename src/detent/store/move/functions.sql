-- database_moves: the move of this database into another one, and the one by which it was filled.
-- takes:   nothing
-- gives:   the rows
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.database_moves_v1() RETURNS SETOF detent.database_move
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT m.* FROM detent.database_move m ORDER BY m.direction;
END $$;
