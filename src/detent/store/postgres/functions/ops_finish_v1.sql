-- ops_finish: end an ops run.
-- takes:   the run's job, as what, metadata of the end; who, why; the error of a failure; of which attempt and lease (null:
--          the current holder's, or anybody's who stops it)
-- gives:   the state it was found in, the state it is in now, whether it was moved, or whether that is refused; or what was
--          found instead of the holder. No row: no such run
-- locks:   the job, with its ready or waiting row first
-- refuses: what the lifecycle ops_run does not declare; whoever is not the holder
CREATE OR REPLACE FUNCTION detent.ops_finish_v1(
  p_job_id bigint, p_state text, p_metadata text, p_actor text, p_reason text DEFAULT NULL, p_error text DEFAULT NULL,
  p_attempt integer DEFAULT NULL, p_lease_id bigint DEFAULT NULL
) RETURNS TABLE (was text, state text, moved boolean, refused boolean, attempt integer, instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
  t      timestamptz := detent.clock();
  j      detent.job := detent.job_lock(p_job_id);
  worker text;
BEGIN
  IF j.task IS DISTINCT FROM 'ops.run' THEN
    RETURN;
  END IF;
  was := detent.ops_state(j.state, j.started_at);
  state := was;
  moved := false;
  refused := false;
  attempt := coalesce(p_attempt, j.attempt);
  IF p_lease_id IS NOT NULL AND (p_lease_id IS DISTINCT FROM j.lease_id OR attempt <> j.attempt) THEN
    instead := 'another claim has it';
  ELSIF was = p_state OR p_state = 'failed' AND EXISTS (
      SELECT 1 FROM detent.execution e WHERE e.job_id = p_job_id AND e.attempt = j.attempt AND e.outcome = 'error') THEN
    NULL;  -- the same end again
  ELSIF was = 'queued' AND p_state = 'cancelled' THEN
    PERFORM detent.job_put_away(j, 'cancelled', 'cancel', p_actor, p_reason, t);
    moved := true;
  ELSIF was = 'running' OR was = 'claimed' AND p_state = 'cancelled' THEN
    IF p_lease_id IS NOT NULL OR p_state <> 'cancelled' THEN
      instead := detent.holder_lost(j, attempt, t);
    END IF;
    moved := instead IS NULL;
  ELSE
    refused := true;
  END IF;
  IF moved AND j.state = 'running' THEN
    SELECT l.worker INTO worker FROM detent.lease l WHERE l.id = j.lease_id;
    CASE p_state
    WHEN 'success' THEN
      PERFORM detent.job_finish_v2(ARRAY[p_job_id], ARRAY[j.attempt], NULL, worker, NULL);
    WHEN 'cancelled' THEN
      PERFORM detent.job_cancel_v1(ARRAY[p_job_id], p_actor, p_reason);
    ELSE
      PERFORM detent.attempt_abort(j, worker, 'error', p_error, 0, true, t);
    END CASE;
  END IF;
  IF moved THEN
    UPDATE detent.ops_run SET finish_metadata = p_metadata WHERE job_id = p_job_id;
    SELECT detent.ops_state(k.state, k.started_at) INTO state FROM detent.job k WHERE k.id = p_job_id;
  END IF;
  RETURN NEXT;
END $$;
