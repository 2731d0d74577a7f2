-- reconciliation_list: the looks at a run, the newest first.
-- takes:   the run, how many; the number of one of them (null is any)
-- gives:   looks
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.reconciliation_list_v1(p_run_id bigint, p_limit integer, p_no integer DEFAULT NULL)
RETURNS SETOF detent.reconciliation
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
    SELECT r.* FROM detent.reconciliation r
     WHERE r.run_id = p_run_id AND (p_no IS NULL OR r.no = p_no) ORDER BY r.no DESC LIMIT p_limit;
END $$;
