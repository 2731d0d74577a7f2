-- Bring a job that rests without success back to pending, with all attempts anew. The caller has locked it.
CREATE OR REPLACE FUNCTION detent.job_back(j detent.job, p_actor text, p_reason text, t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  n timestamptz := detent.job_now(j, t);
BEGIN
  -- A job that was cancelled before it was due keeps its due time; an expiry that has passed no longer counts.
  PERFORM detent.job_log(j, 'pending', 'retry', p_actor, p_reason, n);
  j.due_at := greatest(j.due_at, n);
  j.expires_at := CASE WHEN j.expires_at > n THEN j.expires_at END;
  DELETE FROM detent.dead d WHERE d.job_id = j.id;
  UPDATE detent.job
     SET state = 'pending', spared = attempt, due_at = j.due_at, result = NULL, error = NULL, finished_at = NULL,
         expires_at = j.expires_at, cancel_requested_at = NULL, cancel_requested_by = NULL, cancel_reason = NULL
   WHERE id = j.id;
  PERFORM detent.queue_enter(j, n);
END $$;
