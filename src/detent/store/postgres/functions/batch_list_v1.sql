-- batch_list: runs, the newest first.
-- takes:   state, batch and tenant (null is any), below which id (null: from the newest), how many
-- gives:   runs
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_list_v1(p_state text, p_batch text, p_tenant text, p_before_id bigint, p_limit integer)
RETURNS SETOF detent.batch_run
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
    SELECT b.* FROM detent.batch_run b
     WHERE b.id < coalesce(p_before_id, 9223372036854775807) AND (p_state IS NULL OR b.state = p_state)
       AND (p_batch IS NULL OR b.batch = p_batch) AND (p_tenant IS NULL OR b.tenant = p_tenant)
     ORDER BY b.id DESC LIMIT p_limit;
END $$;
