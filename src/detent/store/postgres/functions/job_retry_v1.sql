-- job_retry: bring failed, quarantined and cancelled jobs back to pending, with all attempts anew.
-- takes:   jobs, who, why; p_notify: wake whoever may wait, instead of looking whether somebody does
-- gives:   one row per item: the state it was found in, null where there is no such job
-- locks:   the jobs, by id, each with its ready or waiting row first
-- refuses: what is running or has succeeded; ops runs, which end once (their state is given as theirs); jobs that carry a
--          pipeline run, which are retried with it (given as part:<run>)
CREATE OR REPLACE FUNCTION detent.job_retry_v1(
  p_ids bigint[], p_actor text, p_reason text DEFAULT NULL, p_notify boolean DEFAULT true
)
RETURNS TABLE (ord integer, from_state text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t    timestamptz := detent.clock();
  item record;
  j    detent.job;
BEGIN
  FOR item IN SELECT u.* FROM unnest(p_ids) WITH ORDINALITY AS u (id, ord) ORDER BY u.id, u.ord LOOP
    ord := item.ord;
    j := detent.job_lock(item.id);
    from_state := detent.job_state_told(j);
    IF detent.is_job_move('retry', from_state, 'pending') AND j.run_id IS NOT NULL AND EXISTS (
         SELECT 1 FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id
          WHERE g.apply_job_id = j.id AND b.rollback_requested_at IS NOT NULL) THEN
      from_state := 'run:' || j.run_id;
    ELSIF detent.is_job_move('retry', from_state, 'pending') AND detent.carries_run(j) THEN
      from_state := 'part:' || j.run_id;
    END IF;
    IF detent.is_job_move('retry', from_state, 'pending') THEN
      PERFORM detent.job_back(j, p_actor, p_reason, t);
    END IF;
    RETURN NEXT;
  END LOOP;
  PERFORM detent.wake_waiters(p_notify);
END $$;
