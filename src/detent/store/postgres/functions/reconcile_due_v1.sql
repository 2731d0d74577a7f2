-- reconcile_due: runs at whose targets it is time to look.
-- takes:   how many
-- gives:   runs, the longest due first
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.reconcile_due_v1(p_limit integer) RETURNS SETOF detent.batch_run
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
    SELECT b.* FROM detent.batch_run b
     WHERE b.reconcile_at IS NOT NULL AND b.reconcile_at <= detent.clock() ORDER BY b.reconcile_at, b.id LIMIT p_limit;
END $$;
