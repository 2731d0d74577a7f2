-- gone_done: these keys are retired.
-- takes:   run, job, attempt, the keys
-- gives:   what was found instead of who ends the run, else how many of them were among the seen
-- locks:   the job, then the run
-- refuses: whoever does not end the run
CREATE OR REPLACE FUNCTION detent.gone_done_v1(p_run_id bigint, p_job_id bigint, p_attempt integer, p_keys text[])
RETURNS TABLE (instead text, gone bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  j detent.job;
  r detent.pipeline_run;
BEGIN
  gone := 0;
  SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id FOR UPDATE;
  SELECT k.* INTO r FROM detent.pipeline_run k WHERE k.id = p_run_id FOR UPDATE;
  instead := detent.finisher_lost(r, j, p_run_id, p_attempt, detent.clock());
  IF instead IS NULL THEN
    DELETE FROM detent.seen s WHERE s.tenant = r.tenant AND s.watermark = r.watermark AND s.key = ANY (p_keys);
    GET DIAGNOSTICS gone = ROW_COUNT;
    UPDATE detent.pipeline_run k SET retired = k.retired + gone, finisher_tries = 0 WHERE k.id = p_run_id;
  END IF;
  RETURN NEXT;
END $$;
