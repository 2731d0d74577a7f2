-- worker_list: the workers that live.
-- takes:   within how many seconds they were seen
-- gives:   workers by name and id
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.worker_list_v1(p_within double precision) RETURNS SETOF detent.worker
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT w.* FROM detent.worker w WHERE w.seen_at >= detent.clock() - make_interval(secs => p_within)
     ORDER BY w.name COLLATE "C", w.id;
END $$;
