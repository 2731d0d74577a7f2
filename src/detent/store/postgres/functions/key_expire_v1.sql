-- key_expire: delete keys whose time to live is over.
-- takes:   how many at most
-- gives:   how many went
-- locks:   the keys that go; whatever others hold stays for a later pass
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.key_expire_v1(p_limit integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t    timestamptz := detent.clock();
  gone integer;
BEGIN
  DELETE FROM detent.job_key WHERE ctid = ANY (ARRAY(
    SELECT k.ctid FROM detent.job_key k WHERE k.expires_at IS NOT NULL AND k.expires_at <= t
     ORDER BY k.expires_at LIMIT p_limit FOR UPDATE SKIP LOCKED));
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN gone;
END $$;
