-- worker_gone: a worker has ended and says so.
-- takes:   its id
-- gives:   nothing
-- locks:   its row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.worker_gone_v1(p_id bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  DELETE FROM detent.worker w WHERE w.id = p_id;
END $$;
