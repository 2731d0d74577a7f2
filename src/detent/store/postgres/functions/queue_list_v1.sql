-- queue_list: every queue that was ever paused, by name.
-- takes:   nothing
-- gives:   one row per queue
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.queue_list_v1() RETURNS SETOF detent.queue
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
  SELECT q.* FROM detent.queue q ORDER BY q.name COLLATE "C";
$$;
