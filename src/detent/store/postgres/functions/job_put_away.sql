-- A logged move to a state of rest: cancel, discard, force. The job is locked, and the move is declared.
CREATE OR REPLACE FUNCTION detent.job_put_away(
  j detent.job, p_to text, p_trigger text, p_actor text, p_reason text, t timestamptz
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  n timestamptz := detent.job_now(j, t);
BEGIN
  PERFORM detent.job_log(j, p_to, p_trigger, p_actor, p_reason, n);
  PERFORM detent.queue_leave(j);
  DELETE FROM detent.dead d WHERE d.job_id = j.id;
  UPDATE detent.job SET state = p_to, finished_at = n,
         committed_at = CASE WHEN p_to = 'succeeded' THEN coalesce(committed_at, n) ELSE committed_at END
   WHERE id = j.id;
  IF p_to = 'quarantined' THEN
    INSERT INTO detent.dead (job_id, tenant, queue, task, reason, quarantined_at)
      VALUES (j.id, j.tenant, j.queue, j.task, 'forced', n);
  END IF;
END $$;
