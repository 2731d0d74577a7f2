-- pipeline_retry: bring a run that ended without success back to work.
-- takes:   run, who, why
-- gives:   the state it was in, null if there is no such run; the state it is in now; what stands in the way instead
--          (active, passed, unplanned, swept, jobless) and the other run that does; its watermark
-- locks:   the jobs of its failed partitions, by id; then the run. While it is at rest, nothing else changes them
-- refuses: a run that is at work or has completed; a second run of its watermark; a watermark that a newer run has moved;
--          a run without partitions; a run whose staged records or jobs are gone
CREATE OR REPLACE FUNCTION detent.pipeline_retry_v1(p_run_id bigint, p_actor text, p_reason text)
RETURNS TABLE (from_state text, to_state text, instead text, other bigint, watermark text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
  t   timestamptz := detent.clock();
  r   detent.pipeline_run;
  j   detent.job;
  ids bigint[] := ARRAY(SELECT p.job_id FROM detent.partition p WHERE p.run_id = p_run_id AND p.state = 'failed' ORDER BY p.job_id);
BEGIN
  PERFORM 1 FROM detent.job k WHERE k.id = ANY (ids) ORDER BY k.id FOR UPDATE;
  SELECT k.* INTO r FROM detent.pipeline_run k WHERE k.id = p_run_id FOR UPDATE;
  from_state := r.state;
  watermark := r.watermark;
  IF r.id IS NULL OR r.state NOT IN ('failed', 'consolidation_skipped') THEN
    RETURN NEXT;
    RETURN;
  END IF;
  IF ids <> ARRAY(SELECT p.job_id FROM detent.partition p WHERE p.run_id = p_run_id AND p.state = 'failed' ORDER BY p.job_id) THEN
    RAISE EXCEPTION 'run % was retried by another caller', p_run_id USING ERRCODE = 'serialization_failure';
  END IF;
  SELECT k.id, 'active' INTO other, instead FROM detent.pipeline_run k
   WHERE k.tenant = r.tenant AND k.watermark = r.watermark AND k.id <> r.id AND k.state NOT IN ('completed', 'failed');
  IF instead IS NULL THEN
    SELECT w.run_id, 'passed' INTO other, instead FROM detent.watermark w
     WHERE w.tenant = r.tenant AND w.name = r.watermark AND w.value > r.captured_at;
  END IF;
  IF instead IS NULL AND r.started_at IS NULL THEN
    instead := 'unplanned';
  ELSIF instead IS NULL AND (SELECT count(*) FROM detent.staged s WHERE s.run_id = r.id)
                            <> (SELECT coalesce(sum(p.staged), 0) FROM detent.partition p WHERE p.run_id = r.id) THEN
    instead := 'swept';
  ELSIF instead IS NULL AND (SELECT count(*) FROM detent.job k WHERE k.id = ANY (ids) AND k.state IN ('failed', 'quarantined', 'cancelled'))
                            <> cardinality(ids) THEN
    instead := 'jobless';
  END IF;
  IF instead IS NOT NULL THEN
    RETURN NEXT;
    RETURN;
  END IF;
  t := greatest(t, r.moved_at);
  -- A partition that is fetched again may bring keys below what is consolidated: then only the consolidation goes on.
  to_state := CASE WHEN r.portions = 0 AND r.parts_failed > 0 THEN 'workers_running' ELSE 'consolidation_triggered' END;
  PERFORM detent.pipeline_log(r, r.state, to_state, 'retry', p_actor, p_reason, false, t);
  IF to_state = 'workers_running' THEN
    UPDATE detent.partition p
       SET state = CASE WHEN p.pages = 0 THEN 'pending' ELSE 'fetching_pages' END, tries = 0, error = NULL, ended_at = NULL
     WHERE p.run_id = r.id AND p.state = 'failed';
  ELSE
    UPDATE detent.portion o SET tries = 0 WHERE o.run_id = r.id AND o.done_at IS NULL;
  END IF;
  BEGIN
    UPDATE detent.pipeline_run k
       SET state = to_state, error = NULL, finished_at = NULL, moved_at = t, finisher_tries = 0,
           parts_ended = k.parts_ended - CASE WHEN to_state = 'workers_running' THEN k.parts_failed ELSE 0 END,
           parts_failed = CASE WHEN to_state = 'workers_running' THEN 0 ELSE k.parts_failed END
     WHERE k.id = r.id;
  EXCEPTION WHEN unique_violation THEN
    RAISE EXCEPTION 'another run of the watermark % has just begun', r.watermark USING ERRCODE = 'serialization_failure';
  END;
  IF to_state = 'workers_running' THEN
    FOR j IN SELECT k.* FROM detent.job k WHERE k.id = ANY (ids) ORDER BY k.id LOOP
      PERFORM detent.job_back(j, p_actor, p_reason, t);
    END LOOP;
  END IF;
  PERFORM detent.wake_waiters(true);
  RETURN NEXT;
END $$;
