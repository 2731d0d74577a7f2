-- schedule_run: write down that a schedule is run now. The job is enqueued by the caller in the same transaction.
-- takes:   the schedule, who, why
-- gives:   the state it is in, null where there is no such schedule
-- locks:   its row, against removal
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.schedule_run_v1(p_name text, p_actor text, p_reason text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  was   detent.schedule;
  state text;
BEGIN
  SELECT s.* INTO was FROM detent.schedule s WHERE s.name = p_name FOR SHARE;
  IF was.name IS NOT NULL THEN
    state := CASE WHEN was.paused_at IS NULL THEN 'active' ELSE 'paused' END;
    PERFORM detent.schedule_log(p_name, was.tenant, state, state, 'run_now', p_actor, p_reason, detent.clock());
  END IF;
  RETURN state;
END $$;
