-- How many more jobs may start under a limit, at most p_most; p_most if there is no such limit. A key without a claim so
-- far has the bounds of its template, and all of its room. Exact if its row is locked, otherwise an estimate.
--
-- One query without a join, so that it becomes part of the statement that asks for many limits: a call for each would cost more
-- than the rest of a claim. Sub-selects, because a join of tables without statistics may read all jobs for each slot.
CREATE OR REPLACE FUNCTION detent.room_under(p_key text, p_template text, p_most integer, t timestamptz) RETURNS SETOF integer
LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN l.held_at IS NOT NULL OR l.paused_until > t OR l.open_until > t THEN 0
              ELSE greatest(least(
                p_most, l.concurrency_max - l.running,
                -- Half open: one attempt at a time.
                CASE WHEN l.open_until IS NOT NULL THEN 1 - l.running END,
                -- Rounding must not cost a whole token.
                floor(greatest(least(l.tokens + 1e-6, p_most), 0))::integer), 0) END
    FROM (SELECT k.held_at, k.paused_until, k.open_until, coalesce(k.concurrency_max, m.concurrency_max) AS concurrency_max,
                 coalesce(k.tokens, m.tokens) AS tokens,
                 CASE WHEN coalesce(k.concurrency_max, m.concurrency_max) IS NOT NULL OR k.open_until IS NOT NULL THEN (
                   SELECT count(*)::integer FROM detent.limit_slot s
                    WHERE s.limit_key = p_key AND (SELECT true FROM detent.job j
                      WHERE j.id = s.job_id AND j.attempt = s.attempt AND j.state = 'running')) END AS running
            FROM (SELECT 1) one
            LEFT JOIN LATERAL (
              SELECT o.key, o.held_at, o.paused_until, o.open_until, o.concurrency_max,
                     CASE WHEN o.rate IS NOT NULL THEN detent.limit_tokens(o, t) END AS tokens
                FROM detent.rate_limit o WHERE o.key = p_key OFFSET 0) k ON true
            LEFT JOIN LATERAL (
              SELECT o.concurrency_max, CASE WHEN o.rate IS NOT NULL THEN o.burst END AS tokens
                FROM detent.rate_limit o WHERE o.key = p_template AND k.key IS NULL OFFSET 0) m ON true) l;
$$;

-- The tokens in the bucket now, with fractions. A damaged rate or time, which a CHECK would
-- refuse, refills nothing: it must not stop the claims of other jobs.
CREATE OR REPLACE FUNCTION detent.limit_tokens(l detent.rate_limit, t timestamptz) RETURNS double precision
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN least(l.burst, l.tokens
    + CASE WHEN l.rate > 0 AND l.per > 0 AND isfinite(l.refilled_at)
           THEN l.rate / l.per * greatest(extract(epoch FROM t - l.refilled_at)::double precision, 0) ELSE 0 END);
END $$;

-- Create the limits of keys with the bounds of their templates, unless they exist. A key without a template is left out.
CREATE OR REPLACE FUNCTION detent.limits_make(p_keys text[], p_templates text[], t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO detent.rate_limit (key, rate, per, burst, concurrency_max, tokens, refilled_at, template)
    SELECT u.key, l.rate, l.per, l.burst, l.concurrency_max, l.burst, t, l.key
      FROM unnest(p_keys, p_templates) AS u (key, template)
     CROSS JOIN LATERAL (SELECT k.* FROM detent.rate_limit k WHERE k.key = u.template OFFSET 0) l
     ORDER BY u.key
    ON CONFLICT (key) DO NOTHING;
END $$;

-- Count jobs that are about to be claimed under limits, and take their cost. Takes a key, a job and a cost for each. The caller
-- has locked the rows of the limits.
CREATE OR REPLACE FUNCTION detent.limits_spend(p_keys text[], p_ids bigint[], p_costs integer[], t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  spent record;
BEGIN
  INSERT INTO detent.limit_slot (limit_key, job_id, attempt, cost)
    SELECT u.key, u.id, j.attempt + 1, u.cost
      FROM unnest(p_keys, p_ids, p_costs) AS u (key, id, cost)
     CROSS JOIN LATERAL (SELECT k.attempt FROM detent.job k WHERE k.id = u.id OFFSET 0) j
    ON CONFLICT (limit_key, job_id) DO UPDATE SET attempt = excluded.attempt, cost = excluded.cost;
  FOR spent IN
    SELECT s.key, s.cost FROM (
      SELECT min(u.key COLLATE "C") COLLATE "default" AS key, sum(u.cost)::double precision AS cost
        FROM unnest(p_keys, p_costs) AS u (key, cost) GROUP BY u.key COLLATE "C") s
     WHERE (SELECT l.rate FROM detent.rate_limit l WHERE l.key = s.key) IS NOT NULL
  LOOP
    -- Rounding must not leave a debt. A job that costs more than the bucket can hold leaves it below 0.
    UPDATE detent.rate_limit l
       SET tokens = CASE WHEN detent.limit_tokens(l, t) - spent.cost > -1e-5 THEN greatest(detent.limit_tokens(l, t) - spent.cost, 0)
                         ELSE detent.limit_tokens(l, t) - spent.cost END,
           refilled_at = greatest(l.refilled_at, t)
     WHERE l.key = spent.key;
  END LOOP;
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
    SELECT u.ord, u.id, u.attempt, u.cost, j.job, coalesce(j.limit_key, m.limit_key) AS key
      FROM unnest(p_ids, p_attempts, p_costs) WITH ORDINALITY AS u (id, attempt, cost, ord)
      LEFT JOIN LATERAL (SELECT k AS job, k.limit_key, k.task FROM detent.job k WHERE k.id = u.id OFFSET 0) j ON true
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
-- The caller has locked the rows of the limits.
CREATE OR REPLACE FUNCTION detent.limits_sweep(p_keys text[], t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  closed record;
BEGIN
  FOR closed IN
    WITH gone AS (
      DELETE FROM detent.limit_slot WHERE ctid = ANY (ARRAY(
        SELECT s.place FROM unnest(p_keys) AS u (key)
         CROSS JOIN LATERAL (
           SELECT o.ctid AS place FROM detent.limit_slot o
            WHERE o.limit_key = u.key AND (SELECT true FROM detent.job j
              WHERE j.id = o.job_id AND j.attempt = o.attempt AND j.state = 'running') IS NULL OFFSET 0) s))
      RETURNING limit_key, job_id, attempt
    ), of_limit AS (
      SELECT min(g.limit_key COLLATE "C") COLLATE "default" AS key, array_agg(g.job_id) AS ids, array_agg(g.attempt) AS attempts
        FROM gone g GROUP BY g.limit_key COLLATE "C"
    )
    -- Only for limits that were throttled, it matters when the attempts have ended.
    SELECT o.key, l.open_until IS NOT NULL AS was_open
      FROM of_limit o
     CROSS JOIN LATERAL (SELECT k.throttled_at, k.open_until FROM detent.rate_limit k
                          WHERE k.key = o.key AND k.throttled_at IS NOT NULL OFFSET 0) l
     WHERE l.throttled_at <= (
       SELECT max((SELECT e.done_at FROM detent.execution e WHERE e.job_id = u.id AND e.attempt = u.attempt))
         FROM unnest(o.ids, o.attempts) AS u (id, attempt))
  LOOP
    UPDATE detent.rate_limit l SET throttled = 0, throttled_at = NULL, open_until = NULL WHERE l.key = closed.key;
    IF closed.was_open THEN
      PERFORM detent.limit_log(closed.key, 'open', 'closed', 'close', 'system', 'an attempt has succeeded', t);
    END IF;
  END LOOP;
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
    PERFORM detent.limits_make(ARRAY[j.limit_key], ARRAY[of_task], t);
  END IF;
  SELECT k.key INTO found_key FROM detent.rate_limit k WHERE k.key = coalesce(j.limit_key, of_task) FOR UPDATE;
  IF found_key IS NOT NULL THEN
    PERFORM detent.limits_sweep(ARRAY[found_key], t);
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
