-- times_list: what tasks say of themselves.
-- takes:   nothing
-- gives:   the tasks that say something, by name
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.times_list_v1() RETURNS SETOF detent.task_times
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT s.* FROM detent.task_times s ORDER BY s.task COLLATE "C";
END $$;
