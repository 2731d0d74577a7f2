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
