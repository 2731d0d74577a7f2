-- schedule_resume: ticks come again.
-- takes:   the schedule, its next tick, who, why
-- gives:   the state it was in, null where there is no such schedule
-- locks:   its row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.schedule_resume_v1(
  p_name text, p_next_at timestamptz, p_actor text, p_reason text DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t   timestamptz := detent.clock();
  was detent.schedule;
BEGIN
  SELECT s.* INTO was FROM detent.schedule s WHERE s.name = p_name FOR UPDATE;
  IF was.paused_at IS NOT NULL THEN
    PERFORM detent.schedule_log(p_name, was.tenant, 'paused', 'active', 'resume', p_actor, p_reason, t);
    UPDATE detent.schedule SET paused_at = NULL, paused_by = NULL, reason = NULL, next_at = p_next_at WHERE name = p_name;
  END IF;
  RETURN CASE WHEN was.name IS NULL THEN NULL WHEN was.paused_at IS NULL THEN 'active' ELSE 'paused' END;
END $$;
