-- job_mark: mark an attempt committed, as the last statement of a commit block without intents. COMMIT follows in the same
--          trip, so a refusal is an error, and its text says which.
-- takes:   job, attempt, result; the number of the transaction in which the holder was checked
-- gives:   nothing
-- locks:   the job, until the transaction ends
-- refuses: whoever is not the holder, a second commit, another transaction than the one checked
-- differs: on SQLite the blocks of a process share a transaction, and their marks are one statement
CREATE OR REPLACE FUNCTION detent.job_mark_v1(p_job_id bigint, p_attempt integer, p_result text, p_xact text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := detent.clock();
  j detent.job;
BEGIN
  IF p_xact = pg_current_xact_id()::text THEN
    UPDATE detent.job
       SET started_at = coalesce(started_at, greatest(t, created_at, leased_at, cancel_requested_at)),
           committed_at = greatest(t, created_at, leased_at, started_at, cancel_requested_at),
           result = coalesce(p_result, result)
     WHERE id = p_job_id AND attempt = p_attempt AND state = 'running' AND committed_at IS NULL
       AND (SELECT l.expires_at FROM detent.lease l WHERE l.id = lease_id) > t
       AND detent.committed_before(p_job_id) IS NULL;
    IF FOUND THEN
      RETURN;
    END IF;
  END IF;
  SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id;
  RAISE EXCEPTION '%', concat('detent refuses|', p_xact <> pg_current_xact_id()::text, '|',
    CASE WHEN j.committed_at IS NOT NULL THEN j.attempt ELSE detent.committed_before(p_job_id) END, '|',
    coalesce(detent.holder_lost(j, p_attempt, t), 'its lease has expired'), '|');
END $$;
