-- Stop a run, whoever holds it; its holder hears of it with its next line. Gives the status it has now.
CREATE OR REPLACE FUNCTION ops.cancel_run(p_run_id text, p_cancelled_by text, p_reason text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, ops, pg_temp SET jit = off AS $$
BEGIN
  PERFORM ops.check_text('p_cancelled_by', p_cancelled_by, 200);
  PERFORM ops.check_text('p_reason', p_reason, 2000, true);
  RETURN ops.finish_run(p_run_id, 'cancelled', jsonb_strip_nulls(
    jsonb_build_object('cancelled_by', p_cancelled_by, 'reason', p_reason)));
END $$;
