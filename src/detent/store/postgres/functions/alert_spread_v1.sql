-- alert_spread: let sinks have what is to be told.
-- takes:   the sinks, and for each the severities it hears of, joined by commas
-- gives:   how many deliveries that makes
-- locks:   the notices that were not spread; those that others hold are passed over, since they are being spread
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_spread_v1(p_sinks text[], p_severities text[]) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  t    timestamptz := detent.clock();
  new  bigint[];
  made integer;
BEGIN
  new := ARRAY(SELECT a.n FROM detent.alert_notice a WHERE NOT a.spread ORDER BY a.n FOR UPDATE SKIP LOCKED);
  INSERT INTO detent.alert_delivery (notice_n, sink, due_at)
    SELECT a.n, r.sink, t
      FROM detent.alert_notice a
      JOIN unnest(p_sinks, p_severities) AS r (sink, severities) ON a.severity = ANY (string_to_array(r.severities, ','))
     WHERE a.n = ANY (new);
  GET DIAGNOSTICS made = ROW_COUNT;
  UPDATE detent.alert_notice a SET spread = true WHERE a.n = ANY (new);
  RETURN made;
END $$;
