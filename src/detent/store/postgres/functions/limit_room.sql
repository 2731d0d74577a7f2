-- How many jobs more may begin under a limit, at most p_most. Its row is locked, its slots are swept.
CREATE OR REPLACE FUNCTION detent.limit_room(p_key text, p_most integer, t timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  l       detent.rate_limit;
  running integer;
  room    integer := p_most;
BEGIN
  SELECT k.* INTO l FROM detent.rate_limit k WHERE k.key = p_key;
  IF l.paused_until > t OR l.open_until > t THEN
    RETURN 0;
  END IF;
  SELECT count(*) INTO running FROM detent.limit_slot s WHERE s.limit_key = p_key;
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
