-- Record a move of a pipeline run. The guards want the record before the move.
CREATE OR REPLACE FUNCTION detent.pipeline_log(
  r detent.pipeline_run, p_from text, p_to text, p_trigger text, p_actor text, p_reason text, p_forced boolean, t timestamptz
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, forced, at)
    VALUES (r.tenant, 'pipeline_run', r.id::text, p_from, p_to, p_trigger, p_actor, p_reason, p_forced, t);
END $$;

-- pipeline_start: create a pipeline run; the caller enqueues its planning job in the same transaction.
-- takes:   its id and what it is for: name, payload, watermark, tenant; full, forced, by whom and why; whether it retires;
--          queue, priority, consolidating jobs, records of a portion; the planning job
-- gives:   created; there (the same run was started before); id_conflict; or in_progress with the run that is
-- locks:   the new row. A caller that starts a run which an open transaction is starting waits for its end
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
     WHERE k.tenant = p_tenant AND k.watermark = p_watermark AND k.state NOT IN ('completed', 'failed', 'cancelled');
    IF FOUND THEN
      answer := 'in_progress';
      EXIT;
    END IF;
    -- It has ended meanwhile.
    stands := (SELECT w.value FROM detent.watermark w WHERE w.tenant = p_tenant AND w.name = p_watermark);
  END LOOP;
  RETURN NEXT;
END $$;

-- pipeline_fan_out: insert the partitions of a run; the caller enqueues the jobs of its partitions in the same transaction.
-- takes:   run, planning job, attempt; how many partitions may fail; numbers, keys, payloads and jobs of the partitions
-- gives:   why the caller is not the holder, or the state of the run (null: no such run) and whether it moved
-- locks:   the job, then the run
-- refuses: a caller that is not the holder
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

-- page_store: store the records of a page and the next offset of its partition.
-- takes:   run and number of the partition, job, attempt, the offset of the page and the next one (null: none follows),
--          keys and data of its records, no key twice
-- gives:   why the caller is not the holder; whether it was stored, and the offset of the partition (null: no such
--          partition of this job)
-- locks:   the job, then the partition
-- refuses: a caller that is not the holder. A page of another offset changes nothing
CREATE OR REPLACE FUNCTION detent.page_store_v1(
  p_run_id bigint, p_n integer, p_job_id bigint, p_attempt integer, p_offset text, p_next text, p_keys text[], p_datas text[]
) RETURNS TABLE (instead text, stored boolean, next_offset text, last_page boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t     timestamptz := detent.clock();
  j     detent.job;
  p     detent.partition;
  fresh bigint;
  total bigint := cardinality(p_keys);
BEGIN
  stored := false;
  SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id FOR UPDATE;
  instead := detent.holder_lost(j, p_attempt, t);
  IF instead IS NULL THEN
    SELECT k.* INTO p FROM detent.partition k WHERE k.run_id = p_run_id AND k.n = p_n AND k.job_id = p_job_id FOR UPDATE;
    next_offset := p.next_offset;
    last_page := p.last_page;
    IF p.next_offset = p_offset AND NOT p.last_page AND p.state IN ('in_progress', 'fetching_pages') THEN
      t := detent.job_now(j, t);
      IF j.started_at IS NULL THEN
        UPDATE detent.job SET started_at = t WHERE id = p_job_id;
      END IF;
      INSERT INTO detent.staged (run_id, key, data, partition_n)
        SELECT p_run_id, u.key, u.data, p_n FROM unnest(p_keys, p_datas) AS u (key, data)
        ON CONFLICT (run_id, key) DO NOTHING;
      GET DIAGNOSTICS fresh = ROW_COUNT;
      IF fresh < total THEN
        UPDATE detent.staged s SET data = u.data, partition_n = p_n
          FROM unnest(p_keys, p_datas) AS u (key, data)
         WHERE s.run_id = p_run_id AND s.key = u.key AND (s.data, s.partition_n) IS DISTINCT FROM (u.data, p_n);
      END IF;
      UPDATE detent.partition
         SET next_offset = coalesce(p_next, p_offset), last_page = p_next IS NULL, pages = pages + 1,
             records = records + total, staged = staged + fresh, tries = 0, paged_at = t,
             state = CASE state WHEN 'in_progress' THEN 'fetching_pages' ELSE state END
       WHERE run_id = p_run_id AND n = p_n;
      stored := true;
      next_offset := coalesce(p_next, p_offset);
      last_page := p_next IS NULL;
    END IF;
  END IF;
  RETURN NEXT;
END $$;

-- pipeline_force: consolidate a skipped run in spite of its failed partitions.
-- takes:   run, who, why
-- gives:   the state it was in; null if there is no such run
-- locks:   the run
-- refuses: a run that was not skipped
CREATE OR REPLACE FUNCTION detent.pipeline_force_v1(p_run_id bigint, p_actor text, p_reason text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := detent.clock();
  r detent.pipeline_run;
BEGIN
  SELECT k.* INTO r FROM detent.pipeline_run k WHERE k.id = p_run_id FOR UPDATE;
  IF r.state = 'consolidation_skipped' THEN
    t := greatest(t, r.moved_at);
    PERFORM detent.pipeline_log(r, r.state, 'consolidation_triggered', 'force', p_actor, p_reason, true, t);
    UPDATE detent.pipeline_run SET state = 'consolidation_triggered', moved_at = t WHERE id = p_run_id;
  END IF;
  RETURN r.state;
END $$;

-- pipeline_cancel: end a run on request. The caller cancels its jobs afterwards; what they do then changes no state of the run.
-- takes:   run, who, why
-- gives:   the state it was in; null if there is no such run
-- locks:   the run
-- refuses: a run that has ended
CREATE OR REPLACE FUNCTION detent.pipeline_cancel_v1(p_run_id bigint, p_actor text, p_reason text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := detent.clock();
  r detent.pipeline_run;
BEGIN
  SELECT k.* INTO r FROM detent.pipeline_run k WHERE k.id = p_run_id FOR UPDATE;
  IF r.state NOT IN ('completed', 'failed', 'cancelled') THEN
    t := greatest(t, r.moved_at);
    PERFORM detent.pipeline_log(r, r.state, 'cancelled', 'cancel', p_actor, p_reason, false, t);
    UPDATE detent.pipeline_run
       SET state = 'cancelled', finished_at = t, moved_at = t, error = 'cancelled by ' || p_actor || coalesce(': ' || p_reason, '')
     WHERE id = p_run_id;
  END IF;
  RETURN r.state;
END $$;

-- pipeline_retry: bring a run that ended without success back to work.
-- takes:   run, who, why
-- gives:   the state it was in, null if there is no such run; the state it is in now; why it cannot be retried
--          (active, passed, unplanned, ending, swept, jobless), and the other run that is the cause; its watermark
-- locks:   the jobs of its failed partitions, by id; then the run. In a final state, nothing else changes them
-- refuses: a run that is running or completed; a second run of its watermark; a watermark that a newer run has moved;
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
  IF r.id IS NULL OR r.state NOT IN ('failed', 'consolidation_skipped', 'cancelled') THEN
    RETURN NEXT;
    RETURN;
  END IF;
  IF ids <> ARRAY(SELECT p.job_id FROM detent.partition p WHERE p.run_id = p_run_id AND p.state = 'failed' ORDER BY p.job_id) THEN
    RAISE EXCEPTION 'run % was retried by another caller', p_run_id USING ERRCODE = 'serialization_failure';
  END IF;
  SELECT k.id, 'active' INTO other, instead FROM detent.pipeline_run k
   WHERE k.tenant = r.tenant AND k.watermark = r.watermark AND k.id <> r.id AND k.state NOT IN ('completed', 'failed', 'cancelled');
  IF instead IS NULL THEN
    SELECT w.run_id, 'passed' INTO other, instead FROM detent.watermark w
     WHERE w.tenant = r.tenant AND w.name = r.watermark AND w.value > r.captured_at;
  END IF;
  IF instead IS NULL AND r.started_at IS NULL THEN
    instead := 'unplanned';
  ELSIF instead IS NULL AND r.parts_ended < r.partitions THEN
    instead := 'ending';
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
  -- A partition that is fetched again may bring keys below consolidated ones: then only the consolidation goes on.
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

-- pipeline_get: a run.
-- takes:   its id
-- gives:   its row, or nothing
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.pipeline_get_v1(p_run_id bigint) RETURNS SETOF detent.pipeline_runs
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT r.* FROM detent.pipeline_runs r WHERE r.id = p_run_id;
END $$;

-- pipeline_list: runs that fit, newest first.
-- takes:   state, name, tenant (null is any), the id to go on before, at most how many
-- gives:   their rows
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.pipeline_list_v1(
  p_state text, p_name text, p_tenant text, p_before_id bigint, p_limit integer
) RETURNS SETOF detent.pipeline_runs
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT r.* FROM detent.pipeline_runs r
     WHERE (p_state IS NULL OR r.state = p_state) AND (p_name IS NULL OR r.name = p_name)
       AND (p_tenant IS NULL OR r.tenant = p_tenant) AND (p_before_id IS NULL OR r.id < p_before_id)
     ORDER BY r.id DESC LIMIT p_limit;
END $$;

-- partition_list: the partitions of a run, by number.
-- takes:   the run, a state (null is any), the number to go on after, at most how many
-- gives:   their rows
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.partition_list_v1(p_run_id bigint, p_state text, p_after_n integer, p_limit integer)
RETURNS SETOF detent.partition
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT p.* FROM detent.partition p
     WHERE p.run_id = p_run_id AND p.n > p_after_n AND (p_state IS NULL OR p.state = p_state) ORDER BY p.n LIMIT p_limit;
END $$;

-- watermark_list: watermarks that fit, by tenant and name.
-- takes:   tenant, name (null is any)
-- gives:   their rows
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.watermark_list_v1(p_tenant text, p_name text) RETURNS SETOF detent.watermark
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT w.* FROM detent.watermark w
     WHERE (p_tenant IS NULL OR w.tenant = p_tenant) AND (p_name IS NULL OR w.name = p_name)
     ORDER BY w.tenant COLLATE "C", w.name COLLATE "C";
END $$;

-- pipeline_prune: delete staged records of old runs, then such runs themselves.
-- takes:   delete records of runs that ended before this; runs that ended before this; at most how many records
-- gives:   how many rows were deleted, and whether more are left
-- locks:   the deleted rows
-- refuses: nothing: the run that moved a watermark last is kept
CREATE OR REPLACE FUNCTION detent.pipeline_prune_v1(p_staged_before timestamptz, p_before timestamptz, p_limit integer)
RETURNS TABLE (gone bigint, more boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  old  bigint;
  rows bigint;
BEGIN
  DELETE FROM detent.staged WHERE ctid = ANY (ARRAY(
    SELECT s.ctid FROM detent.pipeline_run r CROSS JOIN LATERAL (
      SELECT k.ctid FROM detent.staged k WHERE k.run_id = r.id LIMIT p_limit) s
     WHERE r.finished_at < p_staged_before LIMIT p_limit));
  GET DIAGNOSTICS gone = ROW_COUNT;
  more := gone >= p_limit;
  IF NOT more THEN
    SELECT r.id INTO old FROM detent.pipeline_run r
     WHERE r.finished_at < p_before AND NOT EXISTS (SELECT 1 FROM detent.staged s WHERE s.run_id = r.id)
       AND NOT EXISTS (SELECT 1 FROM detent.watermark w WHERE w.run_id = r.id)
     ORDER BY r.id LIMIT 1 FOR UPDATE SKIP LOCKED;
    more := FOUND;
    IF FOUND THEN
      DELETE FROM detent.portion p WHERE p.run_id = old;
      GET DIAGNOSTICS rows = ROW_COUNT;
      gone := gone + rows;
      DELETE FROM detent.partition p WHERE p.run_id = old;
      GET DIAGNOSTICS rows = ROW_COUNT;
      gone := gone + rows + 1;
      DELETE FROM detent.pipeline_run r WHERE r.id = old;
    END IF;
  END IF;
  RETURN NEXT;
END $$;
