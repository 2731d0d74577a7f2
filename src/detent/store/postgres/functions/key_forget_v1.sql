-- key_forget: delete keys without a time to live whose job is gone.
-- takes:   tenant and key to go on after, how many keys to look at
-- gives:   how many went, and tenant and key to go on after, null at the end
-- locks:   the keys that go
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.key_forget_v1(p_tenant text, p_key text, p_limit integer)
RETURNS TABLE (keys integer, next_tenant text, next_key text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  looked integer;
BEGIN
  WITH asked AS MATERIALIZED (
    SELECT k.tenant, k.key, k.job_id, k.expires_at, k.until_claim FROM detent.job_key k
     WHERE (k.tenant, k.key) > (p_tenant, p_key) ORDER BY k.tenant, k.key LIMIT p_limit
  ), gone AS (
    DELETE FROM detent.job_key k USING asked a
     WHERE k.tenant = a.tenant AND k.key = a.key AND k.job_id = a.job_id AND a.expires_at IS NULL AND NOT a.until_claim
       AND NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = a.job_id)
    RETURNING 1
  )
  SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM asked), last.tenant, last.key
    INTO keys, looked, next_tenant, next_key
    FROM (SELECT 1) one LEFT JOIN (SELECT a.tenant, a.key FROM asked a ORDER BY a.tenant DESC, a.key DESC LIMIT 1) last ON true;
  IF looked < p_limit THEN
    next_tenant := NULL;
    next_key := NULL;
  END IF;
  RETURN NEXT;
END $$;
