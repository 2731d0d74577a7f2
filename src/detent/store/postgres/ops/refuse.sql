-- What a caller is told in place of an answer; never returns.
CREATE OR REPLACE FUNCTION ops.refuse(p_code text, p_message text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = p_code, MESSAGE = p_message;
END $$;
