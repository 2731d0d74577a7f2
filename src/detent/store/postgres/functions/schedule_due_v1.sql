-- schedule_due: schedules whose tick has come.
-- takes:   how many at most
-- gives:   schedules that are not paused, the longest due first
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.schedule_due_v1(p_limit integer) RETURNS SETOF detent.schedule
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  RETURN QUERY
    SELECT s.* FROM detent.schedule s WHERE s.next_at <= t AND s.paused_at IS NULL
     ORDER BY s.next_at, s.name COLLATE "C" LIMIT p_limit;
END $$;
