-- effect_begin: put on record that an attempt is about to act where its end may go unheard, and who can tell afterwards.
-- takes:   job, attempt, `probe` or `marker`
-- gives:   what was found instead of the holder, or the attempt that has committed; else the job's nonce, which with its
--          id tells it from every job of every other database
-- locks:   the job
-- refuses: whoever is not the holder, a committed job
CREATE OR REPLACE FUNCTION detent.effect_begin_v1(p_job_id bigint, p_attempt integer, p_told_by text)
RETURNS TABLE (instead text, committed_attempt integer, nonce bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := detent.clock();
  j detent.job;
BEGIN
  SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id FOR UPDATE;
  IF j.committed_at IS NOT NULL THEN
    committed_attempt := j.attempt;
  ELSE
    committed_attempt := detent.committed_before(p_job_id);
  END IF;
  IF committed_attempt IS NULL THEN
    instead := detent.holder_lost(j, p_attempt, t);
  END IF;
  IF instead IS NULL AND committed_attempt IS NULL THEN
    nonce := j.nonce;
    IF j.started_at IS NULL OR j.effect_told_by IS DISTINCT FROM p_told_by THEN
      UPDATE detent.job k
         SET started_at = coalesce(k.started_at, detent.job_now(j, t)), effect_told_by = p_told_by
       WHERE k.id = p_job_id;
    END IF;
  END IF;
  RETURN NEXT;
END $$;
