-- operation_skip: pass over the next job of an operation, as one that was refused.
-- takes:   the operation
-- gives:   the operation as it stands then; nothing if there is none
-- locks:   its row
-- refuses: nothing; an operation that is not running, or has no job left, stays as it is
CREATE OR REPLACE FUNCTION detent.operation_skip_v1(p_id bigint) RETURNS SETOF detent.operation
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  UPDATE detent.operation o
     SET after_id = n.id, looked_at = o.looked_at + 1, refused = o.refused + 1
    FROM (SELECT j.id FROM detent.operation p JOIN LATERAL
            (SELECT k.id FROM detent.job k WHERE k.id > p.after_id AND k.id <= p.until_id ORDER BY k.id LIMIT 1) j ON true
           WHERE p.id = p_id AND p.state = 'running' FOR UPDATE OF p) n
   WHERE o.id = p_id;
  RETURN QUERY SELECT o.* FROM detent.operation o WHERE o.id = p_id;
END $$;
