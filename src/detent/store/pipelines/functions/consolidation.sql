-- portion_take: what a consolidating job does next.
-- takes:   run, job, attempt; how often a portion may be taken
-- gives:   why the caller is not the holder; what to do (null: no such run), the portion's number and
--          how often it was taken, and the keys and data of its records
-- locks:   the job, a portion without a living holder, then the run
-- refuses: a caller that is not the holder
-- differs: portions that other transactions have locked are skipped; SQLite has one writer
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
    -- A try whose attempt was given back does not count.
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

-- portion_done: record that a portion is consolidated.
-- takes:   run, the portion's number, job, attempt
-- gives:   why the caller is not the holder of the portion; null if it is
-- locks:   the job, then the portion, until the transaction ends: it is its last statement
-- refuses: a caller that is not the holder, or did not take the portion last
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

-- Why the caller is not the holder that ends the run; null if it is. The job is locked.
CREATE OR REPLACE FUNCTION detent.finisher_lost(r detent.pipeline_run, j detent.job, p_run_id bigint, p_attempt integer, t timestamptz)
RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN coalesce(
    detent.holder_lost(j, p_attempt, t),
    CASE WHEN (r.state = 'consolidating' AND r.finisher_job_id = j.id AND r.finisher_attempt = p_attempt) IS NOT TRUE
         THEN 'the end of run ' || p_run_id || ' is not in its hands' END);
END $$;

-- gone_take: keys that earlier runs of the watermark consolidated and this full run did not see.
-- takes:   run, job, attempt, at most how many
-- gives:   why the caller does not end the run, else the keys in order
-- locks:   nothing
-- refuses: a caller that does not end the run
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

-- gone_done: record that keys are retired.
-- takes:   run, job, attempt, the keys
-- gives:   why the caller does not end the run, else how many of the keys had been seen
-- locks:   the job, then the run
-- refuses: a caller that does not end the run
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

-- pipeline_complete: complete a run and move its watermark to the time that the run captured.
-- takes:   run, job, attempt
-- gives:   why the caller does not end the run; whether it moved
-- locks:   the job, the run, then the watermark
-- refuses: a caller that does not end the run; a run with records that are not consolidated
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
