-- effect_settle: what a person found out about an effect that nobody knew of.
-- takes:   a job, whether it has happened, who, why, the result where there is one
-- gives:   the state it was found in, why it was quarantined, and whether it was settled; no row where there is no such job
-- locks:   the job, with its ready or waiting row first
-- refuses: what is not quarantined as unknown
CREATE OR REPLACE FUNCTION detent.effect_settle_v1(
  p_job_id bigint, p_done boolean, p_actor text, p_reason text, p_result text DEFAULT NULL
) RETURNS TABLE (from_state text, dead_reason text, settled boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  j detent.job := detent.job_lock(p_job_id);
  n timestamptz;
BEGIN
  IF j.id IS NULL THEN
    RETURN;
  END IF;
  from_state := j.state;
  dead_reason := (SELECT d.reason FROM detent.dead d WHERE d.job_id = p_job_id);
  settled := j.state = 'quarantined' AND coalesce(dead_reason = 'unknown', false);
  IF settled THEN
    n := detent.job_now(j, detent.clock());
    PERFORM detent.job_log(j, CASE WHEN p_done THEN 'succeeded' ELSE 'pending' END, 'settle', p_actor, p_reason, n);
    DELETE FROM detent.dead d WHERE d.job_id = p_job_id;
    IF p_done THEN
      UPDATE detent.job k SET state = 'succeeded', finished_at = n, committed_at = n, result = p_result, error = NULL
       WHERE k.id = p_job_id;
    ELSE
      j.due_at := n;
      j.expires_at := CASE WHEN j.expires_at > n THEN j.expires_at END;
      UPDATE detent.job k
         SET state = 'pending', spared = k.attempt, due_at = n, result = NULL, error = NULL, finished_at = NULL,
             expires_at = j.expires_at, cancel_requested_at = NULL, cancel_requested_by = NULL, cancel_reason = NULL
       WHERE k.id = p_job_id;
      PERFORM detent.queue_enter(j, n);
      PERFORM detent.wake_waiters(false);
    END IF;
  END IF;
  RETURN NEXT;
END $$;
