-- job_get: jobs as they stand.
-- takes:   ids
-- gives:   those that are there
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_get_v1(p_ids bigint[]) RETURNS SETOF detent.job
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY SELECT j.* FROM detent.job j WHERE j.id = ANY (p_ids);
END $$;
