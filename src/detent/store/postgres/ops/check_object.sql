-- A JSON object within its bounds, as it is stored, or the caller is told what it is instead.
CREATE OR REPLACE FUNCTION ops.check_object(p_field text, p_value jsonb, p_bytes_max integer) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, ops, pg_temp SET jit = off AS $$
BEGIN
  IF p_value IS NULL THEN
    RETURN '{}';
  END IF;
  IF jsonb_typeof(p_value) <> 'object' THEN
    PERFORM ops.refuse('DT021', format('%s: found a JSON value of type %s; allowed: an object', p_field, jsonb_typeof(p_value)));
  END IF;
  PERFORM ops.check_text(p_field, p_value::text, p_bytes_max);
  RETURN p_value::text;
END $$;
