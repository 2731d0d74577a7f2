-- These jobs, which are about to be claimed, run under a limit from now on. The limit's row is locked.
CREATE OR REPLACE FUNCTION detent.limit_spend(p_key text, p_ids bigint[], t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO detent.limit_slot (limit_key, job_id, attempt)
    SELECT p_key, j.id, j.attempt + 1 FROM detent.job j WHERE j.id = ANY (p_ids)
    ON CONFLICT (limit_key, job_id) DO UPDATE SET attempt = excluded.attempt;
  UPDATE detent.rate_limit l
     SET tokens = greatest(detent.limit_tokens(l, t) - cardinality(p_ids), 0), refilled_at = greatest(l.refilled_at, t)
   WHERE l.key = p_key AND l.rate IS NOT NULL;
END $$;
