-- The job of a run by the name of the run: run-17. Null where it is no such name.
CREATE OR REPLACE FUNCTION ops.run_number(p_run_id text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN CASE WHEN p_run_id ~ '^run-[0-9]{1,18}$' THEN substr(p_run_id, 5)::bigint END;
END $$;
