-- service_drop: let others have a service at once.
-- takes:   the service, who
-- gives:   nothing
-- locks:   the service's row
-- refuses: nothing: whoever does not have it changes nothing
CREATE OR REPLACE FUNCTION detent.service_drop_v1(p_name text, p_holder bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  UPDATE detent.service s SET expires_at = t WHERE s.name = p_name AND s.holder = p_holder AND s.expires_at > t;
END $$;
