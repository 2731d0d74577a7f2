-- pipeline_fan_out: the plan of a run is made; the caller enqueues the jobs of its partitions in the same transaction.
-- takes:   run, planning job, attempt; how many partitions may fail; numbers, keys, payloads and jobs of the partitions
-- gives:   what was found instead of the holder, or the state of the run (null: no such run) and whether it moved
-- locks:   the job, then the run
-- refuses: whoever is not the holder
CREATE OR REPLACE FUNCTION detent.pipeline_fan_out_v1(
  p_run_id bigint, p_job_id bigint, p_attempt integer, p_tolerated integer, p_ns integer[], p_keys text[],
  p_payloads text[], p_job_ids bigint[]
) RETURNS TABLE (instead text, state text, moved boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t timestamptz := detent.clock();
  j detent.job;
  r detent.pipeline_run;
BEGIN
  moved := false;
  SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id FOR UPDATE;
  instead := detent.holder_lost(j, p_attempt, t);
  IF instead IS NULL THEN
    SELECT k.* INTO r FROM detent.pipeline_run k WHERE k.id = p_run_id AND k.plan_job_id = p_job_id FOR UPDATE;
    state := r.state;
    IF r.state = 'created' THEN
      t := greatest(t, r.moved_at);
      INSERT INTO detent.partition (run_id, n, key, payload, job_id)
        SELECT p_run_id, u.n, u.key, u.payload, u.job_id
          FROM unnest(p_ns, p_keys, p_payloads, p_job_ids) AS u (n, key, payload, job_id);
      PERFORM detent.pipeline_log(r, r.state, 'workers_running', 'fan_out', 'worker', NULL, false, t);
      UPDATE detent.pipeline_run
         SET state = 'workers_running', partitions = cardinality(p_ns), tolerated = p_tolerated, started_at = t, moved_at = t
       WHERE id = p_run_id;
      state := 'workers_running';
      moved := true;
    END IF;
  END IF;
  RETURN NEXT;
END $$;
