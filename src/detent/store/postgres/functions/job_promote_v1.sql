-- job_promote: move waiting jobs that have come due to ready.
-- takes:   how many at most
-- gives:   how many were moved
-- locks:   exactly the waiting rows it moves; whatever others hold is passed over
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_promote_v1(p_limit integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t     timestamptz := detent.clock();
  moved integer;
BEGIN
  WITH due AS (
    DELETE FROM detent.waiting WHERE ctid = ANY (ARRAY(
      SELECT w.ctid FROM detent.waiting w WHERE w.limit_key IS NULL AND w.due_at <= t
       ORDER BY w.due_at, w.job_id LIMIT p_limit FOR UPDATE SKIP LOCKED))
    RETURNING lane_id, due_at, job_id, holds_key, expires_at
  )
  INSERT INTO detent.ready (lane_id, ready_at, job_id, holds_key, expires_at)
    SELECT d.lane_id, d.due_at, d.job_id, d.holds_key, d.expires_at FROM due d;
  GET DIAGNOSTICS moved = ROW_COUNT;
  IF moved > 0 THEN
    PERFORM detent.wake_waiters(false);
  END IF;
  RETURN moved;
END $$;
