-- limit_put: make a limit, or change the one of that key.
-- takes:   the key, jobs per seconds, burst, how many at once (null is no bound), and the tasks and queues it is for; those
--          that it has already stay its own
-- gives:   nothing
-- locks:   the limit's row, and those of the keys that have its bounds
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.limit_put_v1(
  p_key text, p_rate double precision, p_per double precision, p_burst double precision, p_concurrency_max integer,
  p_tasks text[], p_queues text[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  INSERT INTO detent.rate_limit AS l (key, rate, per, burst, concurrency_max, tokens, refilled_at)
    VALUES (p_key, p_rate, p_per, p_burst, p_concurrency_max, p_burst, t)
    ON CONFLICT (key) DO NOTHING;
  -- In the order of a claim: limits of tasks and queues before those of keys.
  PERFORM 1 FROM detent.rate_limit l WHERE l.key = p_key FOR UPDATE;
  PERFORM 1 FROM detent.rate_limit l WHERE l.template = p_key ORDER BY l.key FOR UPDATE;
  UPDATE detent.rate_limit l
     SET rate = p_rate, per = p_per, burst = p_burst, concurrency_max = p_concurrency_max,
         template = CASE WHEN l.key <> p_key THEN l.template END,
         tokens = CASE WHEN l.rate IS NULL THEN p_burst ELSE least(detent.limit_tokens(l, t), p_burst) END,
         refilled_at = greatest(l.refilled_at, t)
   WHERE l.key = p_key OR l.template = p_key;
  INSERT INTO detent.limit_member AS m (kind, name, limit_key)
    SELECT 'task', u.name, p_key FROM unnest(p_tasks) AS u (name)
    UNION SELECT 'queue', u.name, p_key FROM unnest(p_queues) AS u (name)
     ORDER BY 1, 2
    ON CONFLICT (kind, name) DO UPDATE SET limit_key = p_key WHERE m.limit_key <> p_key;
  -- What is running already counts too, under its own key where it has one; it has taken no tokens.
  PERFORM detent.limit_make(u.key, p_key, t)
     FROM (SELECT DISTINCT j.limit_key AS key
             FROM detent.lease l
             JOIN detent.job j ON j.id = ANY (l.job_ids) AND j.lease_id = l.id AND j.state = 'running'
            WHERE j.task = ANY (p_tasks) AND j.limit_key IS NOT NULL ORDER BY 1) u;
  INSERT INTO detent.limit_slot (limit_key, job_id, attempt, cost)
    SELECT CASE WHEN j.task = ANY (p_tasks) THEN coalesce(j.limit_key, p_key) ELSE p_key END, j.id, j.attempt, 0
      FROM detent.lease l
      JOIN detent.job j ON j.id = ANY (l.job_ids) AND j.lease_id = l.id AND j.state = 'running'
     WHERE j.task = ANY (p_tasks) OR j.queue = ANY (p_queues)
    ON CONFLICT (limit_key, job_id) DO UPDATE SET attempt = excluded.attempt;
END $$;
