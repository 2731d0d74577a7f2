-- How many more jobs may start under a limit, at most p_most; p_most if there is no such limit. A key without a claim so
-- far has the bounds of its template, and all of its room. Exact if its row is locked, otherwise an estimate.
CREATE OR REPLACE FUNCTION detent.limit_room(p_key text, p_template text, p_most integer, t timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  l       detent.rate_limit;
  running integer := 0;
  room    integer := p_most;
BEGIN
  SELECT k.* INTO l FROM detent.rate_limit k WHERE k.key = p_key;
  IF l.key IS NULL THEN
    SELECT k.rate, k.per, k.burst, k.concurrency_max, k.burst, t
      INTO l.rate, l.per, l.burst, l.concurrency_max, l.tokens, l.refilled_at
      FROM detent.rate_limit k WHERE k.key = p_template;
  END IF;
  IF l.held_at IS NOT NULL OR l.paused_until > t OR l.open_until > t THEN
    RETURN 0;
  END IF;
  IF l.concurrency_max IS NOT NULL OR l.open_until IS NOT NULL THEN
    SELECT count(*) INTO running FROM detent.limit_slot s
      JOIN detent.job j ON j.id = s.job_id AND j.attempt = s.attempt AND j.state = 'running'
     WHERE s.limit_key = p_key;
  END IF;
  IF l.concurrency_max IS NOT NULL THEN
    room := least(room, l.concurrency_max - running);
  END IF;
  IF l.open_until IS NOT NULL THEN
    -- Half open: one attempt at a time.
    room := least(room, 1 - running);
  END IF;
  IF l.rate IS NOT NULL THEN
    -- Rounding must not cost a whole token.
    room := least(room::double precision, floor(detent.limit_tokens(l, t) + 1e-6))::integer;
  END IF;
  RETURN greatest(room, 0);
END $$;

-- The tokens in the bucket now, with fractions. A damaged rate or time, which a CHECK would
-- refuse, refills nothing: it must not stop the claims of other jobs.
CREATE OR REPLACE FUNCTION detent.limit_tokens(l detent.rate_limit, t timestamptz) RETURNS double precision
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN least(l.burst, l.tokens
    + CASE WHEN l.rate > 0 AND l.per > 0 AND isfinite(l.refilled_at)
           THEN l.rate / l.per * greatest(extract(epoch FROM t - l.refilled_at)::double precision, 0) ELSE 0 END);
END $$;

-- Create the limit of a key with the bounds of its task's limit, unless it exists.
CREATE OR REPLACE FUNCTION detent.limit_make(p_key text, p_template text, t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO detent.rate_limit (key, rate, per, burst, concurrency_max, tokens, refilled_at, template)
    SELECT p_key, l.rate, l.per, l.burst, l.concurrency_max, l.burst, t, l.key
      FROM detent.rate_limit l WHERE l.key = p_template
    ON CONFLICT (key) DO NOTHING;
END $$;

-- Count jobs that are about to be claimed under a limit, and take their cost. The caller has locked the limit's
-- row.
CREATE OR REPLACE FUNCTION detent.limit_spend(p_key text, p_ids bigint[], p_costs integer[], t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  cost double precision := (SELECT sum(u.cost) FROM unnest(p_costs) AS u (cost));
BEGIN
  PERFORM detent.limit_sweep(p_key, t);
  INSERT INTO detent.limit_slot (limit_key, job_id, attempt, cost)
    SELECT p_key, j.id, j.attempt + 1, u.cost FROM unnest(p_ids, p_costs) AS u (id, cost) JOIN detent.job j ON j.id = u.id
    ON CONFLICT (limit_key, job_id) DO UPDATE SET attempt = excluded.attempt, cost = excluded.cost;
  -- Rounding must not leave a debt. A job that costs more than the bucket can hold leaves it below 0.
  UPDATE detent.rate_limit l
     SET tokens = CASE WHEN detent.limit_tokens(l, t) - cost > -1e-5 THEN greatest(detent.limit_tokens(l, t) - cost, 0)
                       ELSE detent.limit_tokens(l, t) - cost END,
         refilled_at = greatest(l.refilled_at, t)
   WHERE l.key = p_key AND l.rate IS NOT NULL;
END $$;

-- limit_charge: set what attempts have cost the limits of their tasks in total.
-- takes:   jobs, attempts and what each has cost
-- gives:   one row per item: the tokens left in the bucket (null if the attempt is under no rate), or what was found
--          instead of the holder
-- locks:   the limits, by key, so that claims under them wait. No job: a slot is of one attempt, and the next claim
--          of the job makes it that of another attempt
-- refuses: a caller that is not the holder
CREATE OR REPLACE FUNCTION detent.limit_charge_v1(p_ids bigint[], p_attempts integer[], p_costs double precision[])
RETURNS TABLE (ord integer, tokens double precision, instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t    timestamptz;
  item record;
  took double precision;
BEGIN
  PERFORM 1 FROM detent.rate_limit l WHERE l.key IN (
    SELECT coalesce(j.limit_key, m.limit_key) FROM detent.job j
      JOIN detent.limit_member m ON m.kind = 'task' AND m.name = j.task
     WHERE j.id = ANY (p_ids))
   ORDER BY l.key FOR UPDATE;
  t := detent.clock();
  FOR item IN
    SELECT u.ord, u.id, u.attempt, u.cost, j AS job, coalesce(j.limit_key, m.limit_key) AS key
      FROM unnest(p_ids, p_attempts, p_costs) WITH ORDINALITY AS u (id, attempt, cost, ord)
      LEFT JOIN detent.job j ON j.id = u.id
      LEFT JOIN detent.limit_member m ON m.kind = 'task' AND m.name = j.task
     ORDER BY u.ord
  LOOP
    ord := item.ord;
    tokens := NULL;
    instead := detent.holder_lost(item.job, item.attempt, t);
    IF instead IS NULL THEN
      SELECT s.cost INTO took FROM detent.limit_slot s
       WHERE s.limit_key = item.key AND s.job_id = item.id AND s.attempt = item.attempt;
      IF FOUND THEN
        UPDATE detent.limit_slot s SET cost = item.cost WHERE s.limit_key = item.key AND s.job_id = item.id;
        UPDATE detent.rate_limit l
           SET tokens = least(l.burst, detent.limit_tokens(l, t) + took - item.cost), refilled_at = greatest(l.refilled_at, t)
         WHERE l.key = item.key AND l.rate IS NOT NULL
        RETURNING l.tokens INTO tokens;
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;

-- Delete the slots of attempts that have ended. A success since the last throttling closes the breaker.
-- The caller has locked the limit's row.
CREATE OR REPLACE FUNCTION detent.limit_sweep(p_key text, t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  done     timestamptz;
  was_open boolean;
BEGIN
  WITH gone AS (
    DELETE FROM detent.limit_slot s
     WHERE s.limit_key = p_key AND NOT EXISTS (
       SELECT 1 FROM detent.job j WHERE j.id = s.job_id AND j.attempt = s.attempt AND j.state = 'running')
    RETURNING s.job_id, s.attempt
  )
  SELECT max(e.done_at) INTO done FROM gone g JOIN detent.execution e ON e.job_id = g.job_id AND e.attempt = g.attempt;
  IF done IS NULL THEN
    RETURN;
  END IF;
  SELECT l.open_until IS NOT NULL INTO was_open FROM detent.rate_limit l WHERE l.key = p_key AND l.throttled_at <= done;
  IF FOUND THEN
    UPDATE detent.rate_limit l SET throttled = 0, throttled_at = NULL, open_until = NULL WHERE l.key = p_key;
    IF was_open THEN
      PERFORM detent.limit_log(p_key, 'open', 'closed', 'close', 'system', 'an attempt has succeeded', t);
    END IF;
  END IF;
END $$;

-- An attempt was throttled and has ended: pause the job's limit for all workers. After more than five in a row, open its
-- breaker for a minute.
CREATE OR REPLACE FUNCTION detent.limit_throttled(j detent.job, p_delay double precision, t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  of_task   text := (SELECT m.limit_key FROM detent.limit_member m WHERE m.kind = 'task' AND m.name = j.task);
  found_key text;
  l         detent.rate_limit;
BEGIN
  IF of_task IS NULL THEN
    RETURN;
  END IF;
  IF j.limit_key IS NOT NULL THEN
    PERFORM detent.limit_make(j.limit_key, of_task, t);
  END IF;
  SELECT k.key INTO found_key FROM detent.rate_limit k WHERE k.key = coalesce(j.limit_key, of_task) FOR UPDATE;
  IF found_key IS NOT NULL THEN
    PERFORM detent.limit_sweep(found_key, t);
    UPDATE detent.rate_limit k
       SET throttled = k.throttled + 1, throttled_at = greatest(k.throttled_at, t),
           paused_until = greatest(k.paused_until, t + make_interval(secs => p_delay))
     WHERE k.key = found_key
    RETURNING k.* INTO l;
    IF l.throttled > 5 THEN
      UPDATE detent.rate_limit k SET open_until = greatest(k.open_until, t + interval '60 seconds') WHERE k.key = found_key;
      IF l.open_until IS NULL THEN
        PERFORM detent.limit_log(
          found_key, 'closed', 'open', 'open', 'system', l.throttled || ' attempts in a row were throttled', t);
      END IF;
    END IF;
  END IF;
END $$;
