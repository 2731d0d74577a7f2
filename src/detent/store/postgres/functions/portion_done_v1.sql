-- portion_done: a portion is consolidated.
-- takes:   run, the portion's number, job, attempt
-- gives:   what was found instead of the holder of the portion; null where it is done
-- locks:   the job, then the portion, until the transaction ends: it is its last statement
-- refuses: whoever is not the holder, or has not taken the portion last
CREATE OR REPLACE FUNCTION detent.portion_done_v1(p_run_id bigint, p_n integer, p_job_id bigint, p_attempt integer)
RETURNS TABLE (instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := detent.clock();
  j detent.job;
  r detent.pipeline_run;
  p detent.portion;
BEGIN
  SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id FOR UPDATE;
  instead := detent.holder_lost(j, p_attempt, t);
  IF instead IS NULL THEN
    SELECT k.* INTO r FROM detent.pipeline_run k WHERE k.id = p_run_id;
    UPDATE detent.portion k SET done_at = t
     WHERE k.run_id = p_run_id AND k.n = p_n AND k.done_at IS NULL AND k.job_id = p_job_id AND k.attempt = p_attempt
       AND r.state = 'consolidating'
     RETURNING k.* INTO p;
    IF NOT FOUND THEN
      instead := 'portion ' || p_n || ' of run ' || p_run_id || ' is not in its hands';
    ELSIF r.retires THEN
      INSERT INTO detent.seen (tenant, watermark, key)
        SELECT r.tenant, r.watermark, s.key FROM detent.staged s
         WHERE s.run_id = p_run_id AND s.key BETWEEN p.first_key AND p.last_key
        ON CONFLICT (tenant, watermark, key) DO NOTHING;
    END IF;
  END IF;
  RETURN NEXT;
END $$;
