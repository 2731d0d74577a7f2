-- A pending job gets its one row: ready where it is due, waiting where it is not.
CREATE OR REPLACE FUNCTION detent.queue_enter(j detent.job, t timestamptz, p_holds_key boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  lane bigint := detent.lane_of(j.queue, j.task, j.tenant, j.priority, j.limit_key);
BEGIN
  IF j.due_at <= t THEN
    INSERT INTO detent.ready (lane_id, ready_at, job_id, holds_key, expires_at)
      VALUES (lane, j.due_at, j.id, p_holds_key, j.expires_at);
  ELSE
    INSERT INTO detent.waiting (job_id, lane_id, due_at, holds_key, expires_at, priority)
      VALUES (j.id, lane, j.due_at, p_holds_key, j.expires_at, j.priority);
  END IF;
END $$;
