-- commit_check: the look at the beginning of a commit block, and after a COMMIT whose answer was lost.
-- takes:   job and attempt; whether to wait for a transaction that may still be marking the job
-- gives:   what was found instead of the holder, or the attempt that has committed; and this transaction's own number,
--          which the mark at the end compares. For the rest of the transaction the server ends a session that idles for
--          longer than the lease has left
-- locks:   nothing, since the block may be long; with p_settled the job
-- refuses: nothing itself
CREATE OR REPLACE FUNCTION detent.commit_check_v1(p_job_id bigint, p_attempt integer, p_settled boolean DEFAULT false)
RETURNS TABLE (instead text, committed_attempt integer, xact text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET lock_timeout = '10s' AS $$
DECLARE
  t    timestamptz := detent.clock();
  held record;
  j    detent.job;
BEGIN
  IF p_settled THEN
    PERFORM 1 FROM detent.job k WHERE k.id = p_job_id FOR UPDATE;
  END IF;
  SELECT k.state = 'running' AND k.attempt = p_attempt AND k.committed_at IS NULL AND l.expires_at > t AS holds,
         1000 * extract(epoch FROM l.expires_at - t) AS milliseconds
    INTO held
    FROM detent.job k LEFT JOIN detent.lease l ON l.id = k.lease_id
   WHERE k.id = p_job_id;
  committed_attempt := detent.committed_before(p_job_id);
  IF held.holds AND committed_attempt IS NULL THEN
    PERFORM set_config(
      'idle_in_transaction_session_timeout', ceil(least(greatest(held.milliseconds, 1), 86400000))::text, true);
  ELSE
    SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id;
    IF j.committed_at IS NOT NULL THEN
      committed_attempt := j.attempt;
    ELSIF committed_attempt IS NULL THEN
      instead := detent.holder_lost(j, p_attempt, t);
    END IF;
  END IF;
  xact := pg_current_xact_id()::text;
  RETURN NEXT;
END $$;
