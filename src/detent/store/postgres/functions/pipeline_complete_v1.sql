-- pipeline_complete: the run is completed, and its watermark stands at the time it captured.
-- takes:   run, job, attempt
-- gives:   what was found instead of who ends the run; whether it moved
-- locks:   the job, the run, then the watermark
-- refuses: whoever does not end the run; a run with records that are not consolidated
CREATE OR REPLACE FUNCTION detent.pipeline_complete_v1(p_run_id bigint, p_job_id bigint, p_attempt integer)
RETURNS TABLE (instead text, moved boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := detent.clock();
  j detent.job;
  r detent.pipeline_run;
BEGIN
  moved := false;
  SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id FOR UPDATE;
  SELECT k.* INTO r FROM detent.pipeline_run k WHERE k.id = p_run_id FOR UPDATE;
  IF r.state IS DISTINCT FROM 'completed' THEN
    instead := detent.finisher_lost(r, j, p_run_id, p_attempt, t);
    IF instead IS NULL AND (
        EXISTS (SELECT 1 FROM detent.portion p WHERE p.run_id = p_run_id AND p.done_at IS NULL)
        OR EXISTS (SELECT 1 FROM detent.staged s WHERE s.run_id = p_run_id AND s.key > r.cut_key)) THEN
      instead := 'run ' || p_run_id || ' has staged records that are not consolidated';
    END IF;
    IF instead IS NULL THEN
      t := greatest(t, r.moved_at);
      PERFORM detent.pipeline_log(r, r.state, 'completed', 'complete', 'worker', NULL, false, t);
      UPDATE detent.pipeline_run k SET state = 'completed', finished_at = t, moved_at = t WHERE k.id = p_run_id;
      INSERT INTO detent.watermark (tenant, name, value, run_id, moved_at)
        VALUES (r.tenant, r.watermark, r.captured_at, p_run_id, t)
        ON CONFLICT (tenant, name) DO UPDATE
          SET value = excluded.value, run_id = excluded.run_id, moved_at = excluded.moved_at;
      moved := true;
    END IF;
  END IF;
  RETURN NEXT;
END $$;
