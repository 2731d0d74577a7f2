-- batch_get: a run.
-- takes:   its id
-- gives:   its row
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_get_v1(p_run_id bigint) RETURNS SETOF detent.batch_run
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY SELECT b.* FROM detent.batch_run b WHERE b.id = p_run_id;
END $$;
