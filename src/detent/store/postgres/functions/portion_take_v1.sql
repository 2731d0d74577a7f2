-- portion_take: what a consolidating job does next.
-- takes:   run, job, attempt; how often a portion may be taken
-- gives:   what was found instead of the holder; what to do (null: no such run), the portion's number and
--          how often it was taken, and the keys and data of its records
-- locks:   the job, a portion that nobody holds, then the run
-- refuses: whoever is not the holder
-- differs: portions that others are taking at this moment are passed over; SQLite has one writer
CREATE OR REPLACE FUNCTION detent.portion_take_v1(p_run_id bigint, p_job_id bigint, p_attempt integer, p_tries_max integer)
RETURNS TABLE (instead text, kind text, n integer, tries integer, keys text[], datas text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t     timestamptz := detent.clock();
  j     detent.job;
  r     detent.pipeline_run;
  p     detent.portion;
BEGIN
  SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id FOR UPDATE;
  instead := detent.holder_lost(j, p_attempt, t);
  IF instead IS NOT NULL THEN
    RETURN NEXT;
    RETURN;
  END IF;
  SELECT k.* INTO r FROM detent.pipeline_run k WHERE k.id = p_run_id;
  IF NOT FOUND OR r.state <> 'consolidating' THEN
    kind := CASE WHEN r.id IS NOT NULL THEN 'over' END;
    RETURN NEXT;
    RETURN;
  END IF;
  IF j.started_at IS NULL THEN
    UPDATE detent.job SET started_at = detent.job_now(j, t) WHERE id = p_job_id;
  END IF;
  SELECT k.* INTO p FROM detent.portion k
   WHERE k.run_id = p_run_id AND k.done_at IS NULL AND (k.job_id = p_job_id OR NOT detent.is_alive(k.job_id, k.attempt, t))
   ORDER BY k.n LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF FOUND THEN
    n := p.n;
    -- A try that was given back does not count.
    tries := p.tries - detent.was_given_back(p.job_id, p.attempt)::integer;
    IF tries >= p_tries_max THEN
      kind := 'used_up';
      RETURN NEXT;
      RETURN;
    END IF;
    tries := tries + 1;
    UPDATE detent.portion k SET tries = portion_take_v1.tries, job_id = p_job_id, attempt = p_attempt
     WHERE k.run_id = p_run_id AND k.n = p.n;
  ELSE
    SELECT k.* INTO r FROM detent.pipeline_run k WHERE k.id = p_run_id FOR UPDATE;
    SELECT min(s.key), max(s.key), count(*) INTO p.first_key, p.last_key, p.records
      FROM (SELECT k.key FROM detent.staged k WHERE k.run_id = p_run_id AND k.key > r.cut_key
             ORDER BY k.key LIMIT r.portion_size) s;
    IF p.records > 0 THEN
      n := r.portions + 1;
      tries := 1;
      INSERT INTO detent.portion (run_id, n, first_key, last_key, records, tries, job_id, attempt)
        VALUES (p_run_id, n, p.first_key, p.last_key, p.records, 1, p_job_id, p_attempt);
      UPDATE detent.pipeline_run SET portions = n, cut_key = p.last_key WHERE id = p_run_id;
    ELSE
      kind := 'nothing';
      IF r.state = 'consolidating'
         AND NOT EXISTS (SELECT 1 FROM detent.portion k WHERE k.run_id = p_run_id AND k.done_at IS NULL)
         AND (r.finisher_job_id IS NULL OR r.finisher_job_id = p_job_id
              OR NOT detent.is_alive(r.finisher_job_id, r.finisher_attempt, t)) THEN
        tries := r.finisher_tries
          - (r.finisher_tries > 0 AND detent.was_given_back(r.finisher_job_id, r.finisher_attempt))::integer;
        kind := CASE WHEN tries >= p_tries_max THEN 'used_up' ELSE 'finish' END;
        n := 0;
        IF kind = 'finish' THEN
          tries := tries + 1;
          UPDATE detent.pipeline_run k
             SET finisher_job_id = p_job_id, finisher_attempt = p_attempt, finisher_tries = portion_take_v1.tries
           WHERE k.id = p_run_id;
        END IF;
      END IF;
      RETURN NEXT;
      RETURN;
    END IF;
  END IF;
  kind := 'portion';
  SELECT array_agg(s.key ORDER BY s.key), array_agg(s.data ORDER BY s.key) INTO keys, datas
    FROM detent.staged s WHERE s.run_id = p_run_id AND s.key BETWEEN p.first_key AND p.last_key;
  RETURN NEXT;
END $$;
