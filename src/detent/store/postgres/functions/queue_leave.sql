-- A job that stops being pending gives back its row, and the key it held only until then. Where it does not stand where its
-- row says, somebody changed that by hand: nothing is done.
CREATE OR REPLACE FUNCTION detent.queue_leave(j detent.job) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF j.state = 'pending' THEN
    DELETE FROM detent.waiting w WHERE w.job_id = j.id;
    IF NOT FOUND THEN
      DELETE FROM detent.ready r
        WHERE r.lane_id = detent.lane_of(j.queue, j.task, j.tenant, j.priority, j.limit_key)
          AND r.ready_at = j.due_at AND r.job_id = j.id;
      IF NOT FOUND THEN
        PERFORM detent.job_misplaced(j.id);
      END IF;
    END IF;
    DELETE FROM detent.job_key k WHERE k.job_id = j.id AND k.until_claim;
  END IF;
END $$;
