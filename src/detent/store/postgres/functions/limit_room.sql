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
