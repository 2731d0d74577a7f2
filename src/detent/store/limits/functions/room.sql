-- How many jobs more may begin under a limit, at most p_most; that many where there is none. A key that nobody has claimed
-- under yet has the bounds of its template, and all of its room. For certain where its row is locked, otherwise as it seems.
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
    -- Half open: one tries for all.
    room := least(room, 1 - running);
  END IF;
  IF l.rate IS NOT NULL THEN
    -- What rounding took from a whole token is not held against it.
    room := least(room::double precision, floor(detent.limit_tokens(l, t) + 1e-6))::integer;
  END IF;
  RETURN greatest(room, 0);
END $$;

-- How many jobs may begin now as far as the rate goes, with what is left of the next one. A rate or time that a CHECK would
-- refuse gives nothing back: it must not stop the claims of other jobs.
CREATE OR REPLACE FUNCTION detent.limit_tokens(l detent.rate_limit, t timestamptz) RETURNS double precision
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN least(l.burst, l.tokens
    + CASE WHEN l.rate > 0 AND l.per > 0 AND isfinite(l.refilled_at)
           THEN l.rate / l.per * greatest(extract(epoch FROM t - l.refilled_at)::double precision, 0) ELSE 0 END);
END $$;

-- The limit of a key that jobs of a task have, with the bounds of the task's own; there already, it stays as it is.
CREATE OR REPLACE FUNCTION detent.limit_make(p_key text, p_template text, t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO detent.rate_limit (key, rate, per, burst, concurrency_max, tokens, refilled_at, template)
    SELECT p_key, l.rate, l.per, l.burst, l.concurrency_max, l.burst, t, l.key
      FROM detent.rate_limit l WHERE l.key = p_template
    ON CONFLICT (key) DO NOTHING;
END $$;

-- These jobs, which are about to be claimed, run under a limit from now on, and take what they cost it. The limit's row is
-- locked.
CREATE OR REPLACE FUNCTION detent.limit_spend(p_key text, p_ids bigint[], p_costs integer[], t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  cost double precision := (SELECT sum(u.cost) FROM unnest(p_costs) AS u (cost));
BEGIN
  PERFORM detent.limit_sweep(p_key, t);
  INSERT INTO detent.limit_slot (limit_key, job_id, attempt, cost)
    SELECT p_key, j.id, j.attempt + 1, u.cost FROM unnest(p_ids, p_costs) AS u (id, cost) JOIN detent.job j ON j.id = u.id
    ON CONFLICT (limit_key, job_id) DO UPDATE SET attempt = excluded.attempt, cost = excluded.cost;
  -- What rounding took from a whole token is not owed. A job that costs more than the bucket can ever hold leaves it below 0.
  UPDATE detent.rate_limit l
     SET tokens = CASE WHEN detent.limit_tokens(l, t) - cost > -1e-5 THEN greatest(detent.limit_tokens(l, t) - cost, 0)
                       ELSE detent.limit_tokens(l, t) - cost END,
         refilled_at = greatest(l.refilled_at, t)
   WHERE l.key = p_key AND l.rate IS NOT NULL;
END $$;

-- limit_charge: say what attempts have cost the limits of their tasks, in all.
-- takes:   jobs, attempts and what each has cost
-- gives:   one row per item: what is left in the bucket then (null where the attempt is under no rate), or what was found
--          instead of the holder
-- locks:   the limits, by key: whoever claims under them comes after. No job: a slot is of one attempt, and the next claim
--          of the job makes it that of another
-- refuses: whoever is not the holder
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

-- Take away the slots of a limit that no longer count. A success since the other side last said no closes the breaker.
-- The limit's row is locked.
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

-- The other side said no to a job: its limit pauses for everybody, and after more than five in a row its breaker opens
-- for a minute. The attempt has ended.
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
