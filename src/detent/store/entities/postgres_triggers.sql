-- Before its first line, a transaction takes a shared advisory lock whose key is the highest line number so far (above a
-- constant that is Detent's own). All its lines get higher numbers, and it keeps the lock until it ends. So readers of the record
-- can tell which numbers an open transaction may still fill: `record_feed`.
CREATE OR REPLACE FUNCTION detent.transition_log_announced() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF coalesce(current_setting('detent.announced', true), '') = '' THEN
    PERFORM pg_advisory_xact_lock_shared((1148452864::bigint << 32)
                                         + (SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END FROM detent.transition_log_n_seq s));
    PERFORM set_config('detent.announced', '1', true);
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER transition_log_announced BEFORE INSERT ON detent.transition_log
  FOR EACH STATEMENT EXECUTE FUNCTION detent.transition_log_announced();
