-- job_cancel: stop jobs.
-- takes:   jobs, who, why
-- gives:   one row per item: the state it is in now; the attempt that has committed; whether the move was refused; a row
--          without state where there is no such job
-- locks:   the jobs, by id, each with its ready or waiting row first
-- refuses: what is committed; what rests among failures and dead letters
CREATE OR REPLACE FUNCTION detent.job_cancel_v1(p_ids bigint[], p_actor text, p_reason text DEFAULT NULL)
RETURNS TABLE (ord integer, state text, committed_attempt integer, refused boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t    timestamptz;
  item record;
  j    detent.job;
  n    timestamptz;
BEGIN
  FOR item IN SELECT u.* FROM unnest(p_ids) WITH ORDINALITY AS u (id, ord) ORDER BY u.id, u.ord LOOP
    ord := item.ord;
    j := detent.job_lock(item.id);
    t := detent.clock();  -- after the lock, so that it is not earlier than a move that this one waited for
    state := j.state;
    committed_attempt := CASE WHEN j.committed_at IS NOT NULL THEN j.attempt END;
    refused := coalesce(j.state NOT IN ('running', 'succeeded', 'cancelled')
                        AND NOT detent.is_job_move('cancel', j.state, 'cancelled'), false);
    IF detent.is_job_move('cancel', j.state, 'cancelled') THEN
      PERFORM detent.job_put_away(j, 'cancelled', 'cancel', p_actor, p_reason, t);
      state := 'cancelled';
    ELSIF j.state = 'running' AND j.committed_at IS NULL THEN
      IF j.cancel_requested_at IS NULL THEN
        n := detent.job_now(j, t);
        PERFORM detent.job_log(j, 'running', 'request_cancel', p_actor, p_reason, n);
        UPDATE detent.job SET cancel_requested_at = n, cancel_requested_by = p_actor, cancel_reason = p_reason
         WHERE id = j.id;
      END IF;
      IF j.task = 'ops.run' THEN
        -- Its holder renews nothing and so never hears of a request: the run ends at once, and the holder is refused.
        SELECT u.* INTO j FROM detent.job u WHERE u.id = item.id;
        PERFORM detent.attempt_abort(j, (SELECT l.worker FROM detent.lease l WHERE l.id = j.lease_id), 'cancelled',
                                     NULL, 0, true, t);
        state := 'cancelled';
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;
