-- schedule_pause: no tick comes until it is resumed.
-- takes:   the schedule, who, why
-- gives:   the state it was in, null where there is no such schedule
-- locks:   its row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.schedule_pause_v1(
  p_name text, p_actor text, p_reason text DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t   timestamptz := detent.clock();
  was detent.schedule;
BEGIN
  SELECT s.* INTO was FROM detent.schedule s WHERE s.name = p_name FOR UPDATE;
  IF was.name IS NOT NULL AND was.paused_at IS NULL THEN
    PERFORM detent.schedule_log(p_name, was.tenant, 'active', 'paused', 'pause', p_actor, p_reason, t);
    UPDATE detent.schedule SET paused_at = t, paused_by = p_actor, reason = p_reason WHERE name = p_name;
  END IF;
  RETURN CASE WHEN was.name IS NULL THEN NULL WHEN was.paused_at IS NULL THEN 'active' ELSE 'paused' END;
END $$;
