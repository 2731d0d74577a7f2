-- batch_lock: a run that nobody else can change until the caller's transaction has ended.
-- takes:   the run
-- gives:   its row
-- locks:   the run
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_lock_v1(p_run_id bigint) RETURNS SETOF detent.batch_run
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY SELECT b.* FROM detent.batch_run b WHERE b.id = p_run_id FOR UPDATE;
END $$;
