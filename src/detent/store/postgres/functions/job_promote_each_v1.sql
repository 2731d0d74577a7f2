-- job_promote_each: move waiting jobs that have come due to ready, row by row.
-- takes:   how many at most; the jobs to leave out
-- gives:   the jobs that were moved; those that could not be, and why
-- locks:   the waiting rows it looks at; rows that others hold are passed over
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_promote_each_v1(p_limit integer, p_skip bigint[])
RETURNS TABLE (done bigint[], bad bigint[], causes text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := detent.clock();
  w detent.waiting;
BEGIN
  done := '{}';
  bad := '{}';
  causes := '{}';
  FOR w IN
    SELECT x.* FROM detent.waiting x
     WHERE x.limit_key IS NULL AND x.due_at <= t AND x.job_id <> ALL (p_skip)
     ORDER BY x.due_at, x.job_id LIMIT p_limit FOR UPDATE SKIP LOCKED
  LOOP
    BEGIN
      DELETE FROM detent.waiting x WHERE x.job_id = w.job_id;
      INSERT INTO detent.ready (lane_id, ready_at, job_id, holds_key, expires_at)
        VALUES (w.lane_id, w.due_at, w.job_id, w.holds_key, w.expires_at);
      done := done || w.job_id;
    EXCEPTION WHEN OTHERS THEN
      IF NOT detent.is_of_one_row(SQLSTATE) THEN
        RAISE;
      END IF;
      bad := bad || w.job_id;
      causes := causes || SQLERRM;
    END;
  END LOOP;
  IF cardinality(done) > 0 THEN
    PERFORM detent.wake_waiters(false);
  END IF;
  RETURN NEXT;
END $$;
