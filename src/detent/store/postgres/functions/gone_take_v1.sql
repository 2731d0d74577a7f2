-- gone_take: keys that earlier runs of the watermark consolidated and this full run did not see.
-- takes:   run, job, attempt, at most how many
-- gives:   what was found instead of who ends the run, else the keys in their order
-- locks:   nothing
-- refuses: whoever does not end the run
CREATE OR REPLACE FUNCTION detent.gone_take_v1(p_run_id bigint, p_job_id bigint, p_attempt integer, p_limit integer)
RETURNS TABLE (instead text, keys text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  j detent.job;
  r detent.pipeline_run;
BEGIN
  SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id;
  SELECT k.* INTO r FROM detent.pipeline_run k WHERE k.id = p_run_id;
  instead := detent.finisher_lost(r, j, p_run_id, p_attempt, detent.clock());
  keys := '{}';
  IF instead IS NULL AND r.retires AND r.is_full AND r.parts_failed = 0
     AND EXISTS (SELECT 1 FROM detent.staged s WHERE s.run_id = p_run_id) THEN
    keys := ARRAY(
      SELECT s.key FROM detent.seen s
       WHERE s.tenant = r.tenant AND s.watermark = r.watermark
         AND NOT EXISTS (SELECT 1 FROM detent.staged t WHERE t.run_id = p_run_id AND t.key = s.key)
       ORDER BY s.key LIMIT p_limit);
  END IF;
  RETURN NEXT;
END $$;
