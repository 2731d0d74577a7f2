-- A text within its bounds, or the caller is told which one is not.
CREATE OR REPLACE FUNCTION ops.check_text(p_field text, p_text text, p_bytes_max integer, p_may_be_empty boolean DEFAULT false)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, ops, pg_temp SET jit = off AS $$
BEGIN
  IF octet_length(p_text) > p_bytes_max THEN
    PERFORM ops.refuse('DT020', format('%s: found %s bytes; allowed: at most %s', p_field, octet_length(p_text), p_bytes_max));
  ELSIF NOT p_may_be_empty AND coalesce(p_text, '') = '' THEN
    PERFORM ops.refuse('DT020', format('%s: found nothing; allowed: some text', p_field));
  END IF;
END $$;
