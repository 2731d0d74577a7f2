-- job_force: an operator's override.
-- takes:   a job, where to, who, why: both are required
-- gives:   the state it was found in and whether it was moved; no row where there is no such job
-- locks:   the job, with its ready or waiting row first
-- refuses: what the lifecycle does not declare as forced
CREATE OR REPLACE FUNCTION detent.job_force_v1(p_job_id bigint, p_to text, p_actor text, p_reason text)
RETURNS TABLE (from_state text, moved boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  j detent.job := detent.job_lock(p_job_id);
BEGIN
  IF j.id IS NULL THEN
    RETURN;
  END IF;
  from_state := detent.job_state_told(j);
  moved := detent.is_job_move('force', from_state, p_to);
  IF moved THEN
    PERFORM detent.job_put_away(j, p_to, 'force', p_actor, p_reason, detent.clock());
  END IF;
  RETURN NEXT;
END $$;
