-- pipeline_start: create a pipeline run; the caller enqueues its planning job in the same transaction.
-- takes:   its id and what it is for: name, payload, watermark, tenant; full, forced, by whom and why; whether it retires;
--          queue, priority, consolidating jobs, records of a portion; the planning job
-- gives:   created; there (the same run was started before); id_conflict; or in_progress with the run that is
-- locks:   the new row. Who starts a run that an open transaction is starting waits for its end
-- refuses: a second run of a watermark that has not ended; the id of another run
CREATE OR REPLACE FUNCTION detent.pipeline_start_v1(
  p_id bigint, p_name text, p_payload text, p_watermark text, p_tenant text, p_full boolean, p_forced boolean,
  p_started_by text, p_reason text, p_retires boolean, p_queue text, p_priority smallint, p_replicas integer,
  p_portion_size integer, p_plan_job_id bigint
) RETURNS TABLE (answer text, run_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s' AS $$
DECLARE
  t      timestamptz := detent.clock();
  r      detent.pipeline_run;
  stands timestamptz := (SELECT w.value FROM detent.watermark w WHERE w.tenant = p_tenant AND w.name = p_watermark);
BEGIN
  FOR tries IN 1..5 LOOP
    SELECT k.* INTO r FROM detent.pipeline_run k WHERE k.id = p_id;
    IF FOUND THEN
      answer := CASE WHEN r.name = p_name AND r.payload = p_payload AND r.tenant = p_tenant THEN 'there' ELSE 'id_conflict' END;
      EXIT;
    END IF;
    INSERT INTO detent.pipeline_run (id, tenant, name, payload, watermark, since, captured_at, is_full, is_forced,
        started_by, reason, retires, queue, priority, replicas, portion_size, plan_job_id, created_at, moved_at)
      VALUES (p_id, p_tenant, p_name, p_payload, p_watermark, CASE WHEN NOT p_full THEN stands END, greatest(t, stands),
              p_full OR stands IS NULL, p_forced, p_started_by, p_reason, p_retires, p_queue, p_priority, p_replicas,
              p_portion_size, p_plan_job_id, t, t)
      ON CONFLICT DO NOTHING
      RETURNING * INTO r;
    IF FOUND THEN
      PERFORM detent.pipeline_log(r, NULL, 'created', 'create', p_started_by, p_reason, false, t);
      answer := 'created';
      EXIT;
    END IF;
    SELECT k.id INTO run_id FROM detent.pipeline_run k
     WHERE k.tenant = p_tenant AND k.watermark = p_watermark AND k.state NOT IN ('completed', 'failed');
    IF FOUND THEN
      answer := 'in_progress';
      EXIT;
    END IF;
    -- It has ended meanwhile.
    stands := (SELECT w.value FROM detent.watermark w WHERE w.tenant = p_tenant AND w.name = p_watermark);
  END LOOP;
  RETURN NEXT;
END $$;
