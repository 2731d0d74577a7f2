-- pipeline_prune: staged records of runs that ended long ago, then such runs themselves.
-- takes:   records of runs that ended before this go; whole runs that ended before this; at most how many records
-- gives:   how many rows went, and whether there are more to go
-- locks:   what goes
-- refuses: nothing: a run on which a watermark stands is kept
CREATE OR REPLACE FUNCTION detent.pipeline_prune_v1(p_staged_before timestamptz, p_before timestamptz, p_limit integer)
RETURNS TABLE (gone bigint, more boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  old  bigint;
  rows bigint;
BEGIN
  DELETE FROM detent.staged WHERE ctid = ANY (ARRAY(
    SELECT s.ctid FROM detent.pipeline_run r CROSS JOIN LATERAL (
      SELECT k.ctid FROM detent.staged k WHERE k.run_id = r.id LIMIT p_limit) s
     WHERE r.finished_at < p_staged_before LIMIT p_limit));
  GET DIAGNOSTICS gone = ROW_COUNT;
  more := gone >= p_limit;
  IF NOT more THEN
    SELECT r.id INTO old FROM detent.pipeline_run r
     WHERE r.finished_at < p_before AND NOT EXISTS (SELECT 1 FROM detent.staged s WHERE s.run_id = r.id)
       AND NOT EXISTS (SELECT 1 FROM detent.watermark w WHERE w.run_id = r.id)
     ORDER BY r.id LIMIT 1 FOR UPDATE SKIP LOCKED;
    more := FOUND;
    IF FOUND THEN
      DELETE FROM detent.portion p WHERE p.run_id = old;
      GET DIAGNOSTICS rows = ROW_COUNT;
      gone := gone + rows;
      DELETE FROM detent.partition p WHERE p.run_id = old;
      GET DIAGNOSTICS rows = ROW_COUNT;
      gone := gone + rows + 1;
      DELETE FROM detent.pipeline_run r WHERE r.id = old;
    END IF;
  END IF;
  RETURN NEXT;
END $$;
