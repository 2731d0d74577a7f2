-- A job that stops being pending gives back its row, and the key it held only until then.
CREATE OR REPLACE FUNCTION detent.queue_leave(j detent.job) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF j.state = 'pending' THEN
    DELETE FROM detent.ready r
      WHERE r.lane_id = detent.lane_of(j.queue, j.task, j.tenant, j.priority) AND r.ready_at = j.due_at AND r.job_id = j.id;
    DELETE FROM detent.waiting w WHERE w.job_id = j.id;
    DELETE FROM detent.job_key k WHERE k.job_id = j.id AND k.until_claim;
  END IF;
END $$;
