-- The job, locked; a pending one together with its ready or waiting row, which is locked first, as a claim does it.
-- A row of nulls where there is no such job.
CREATE OR REPLACE FUNCTION detent.job_lock(p_job_id bigint) RETURNS detent.job
LANGUAGE plpgsql AS $$
DECLARE
  seen   detent.job;
  locked detent.job;
  in_line boolean;
BEGIN
  -- Between the look and the lock the job may be claimed, promoted or given back. Each round means that it was.
  FOR round IN 1 .. 10 LOOP
    SELECT j.* INTO seen FROM detent.job j WHERE j.id = p_job_id;
    in_line := false;
    IF seen.state = 'pending' THEN
      PERFORM 1 FROM detent.ready r
        WHERE r.lane_id = detent.lane_of(seen.queue, seen.task, seen.tenant, seen.priority, seen.limit_key)
          AND r.ready_at = seen.due_at AND r.job_id = p_job_id FOR UPDATE;
      in_line := FOUND;
      IF NOT in_line THEN
        PERFORM 1 FROM detent.waiting w WHERE w.job_id = p_job_id FOR UPDATE;
        in_line := FOUND;
      END IF;
    END IF;
    SELECT j.* INTO locked FROM detent.job j WHERE j.id = p_job_id FOR UPDATE;
    EXIT WHEN locked.id IS NULL OR locked.state <> 'pending' OR in_line AND locked.due_at = seen.due_at;
  END LOOP;
  RETURN locked;
END $$;
