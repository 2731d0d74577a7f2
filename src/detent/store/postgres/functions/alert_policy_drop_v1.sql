-- alert_policy_drop: take back what was set of a policy.
-- takes:   its name, who, why
-- gives:   whether anything was set
-- locks:   its row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_policy_drop_v1(p_name text, p_actor text, p_reason text DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  was detent.alert_policy;
BEGIN
  DELETE FROM detent.alert_policy p WHERE p.name = p_name RETURNING p.* INTO was;
  IF was.name IS NULL THEN
    RETURN false;
  END IF;
  INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    VALUES ('alert_policy', p_name, CASE WHEN was.enabled THEN 'on' ELSE 'off' END, 'default', 'drop', p_actor, p_reason,
            detent.clock());
  RETURN true;
END $$;
