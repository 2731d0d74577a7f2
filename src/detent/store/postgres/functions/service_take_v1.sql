-- service_take: do a service that one at a time does.
-- takes:   the service, who, for how many seconds
-- gives:   the term; null where somebody else has it
-- locks:   the service's row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.service_take_v1(p_name text, p_holder bigint, p_seconds double precision)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  t       timestamptz := detent.clock();
  my_term bigint;
BEGIN
  INSERT INTO detent.service AS s (name, holder, term, expires_at)
    VALUES (p_name, p_holder, 1, t + make_interval(secs => p_seconds))
    ON CONFLICT (name) DO UPDATE
      SET holder = p_holder, expires_at = excluded.expires_at,
          term = s.term + (s.holder <> p_holder OR s.expires_at <= t)::integer
      -- Nobody takes a service for so long: a term that ends later is damage, and must not keep it from all workers.
      WHERE s.holder = p_holder OR s.expires_at <= t OR s.expires_at > t + make_interval(secs => greatest(p_seconds, 3600))
    RETURNING s.term INTO my_term;
  RETURN my_term;
END $$;
