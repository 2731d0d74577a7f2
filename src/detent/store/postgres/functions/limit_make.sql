-- The limit of a key that jobs of a task have, with the bounds of the task's own; there already, it stays as it is.
CREATE OR REPLACE FUNCTION detent.limit_make(p_key text, p_template text, t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO detent.rate_limit (key, rate, per, burst, concurrency_max, tokens, refilled_at, template)
    SELECT p_key, l.rate, l.per, l.burst, l.concurrency_max, l.burst, t, l.key
      FROM detent.rate_limit l WHERE l.key = p_template
    ON CONFLICT (key) DO NOTHING;
END $$;
