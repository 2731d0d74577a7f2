-- alert_measure: what several policies look at, in one look.
-- takes:   for each question the measure, of what each (whole, queue, task, limit), how many seconds back
-- gives:   for each question, by its place from 1 on, what alert_figures gives
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_measure_v1(p_measures text[], p_each text[], p_windows double precision[])
RETURNS TABLE (question bigint, of_scope text, value double precision, of_count bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT q.place, f.of_scope, f.value, f.of_count
      FROM unnest(p_measures, p_each, p_windows) WITH ORDINALITY AS q (measure, each_, seconds, place)
      CROSS JOIN LATERAL detent.alert_figures_v1(q.measure, q.each_, q.seconds) f;
END $$;
