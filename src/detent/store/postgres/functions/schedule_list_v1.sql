-- schedule_list: every schedule.
-- takes:   nothing
-- gives:   schedules by name
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.schedule_list_v1() RETURNS SETOF detent.schedule
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT s.* FROM detent.schedule s ORDER BY s.name COLLATE "C";
END $$;
