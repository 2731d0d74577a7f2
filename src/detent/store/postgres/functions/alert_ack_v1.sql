-- alert_ack: somebody looks after it.
-- takes:   the policy and what of it, who, why
-- gives:   the state it is in, and whether this changed anything; no state where there is no such alert
-- locks:   the alert's row
-- refuses: an alert that is not there
CREATE OR REPLACE FUNCTION detent.alert_ack_v1(
  p_policy text, p_scope text, p_actor text, p_reason text DEFAULT NULL, OUT now_state text, OUT changed boolean
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t   timestamptz := detent.clock();
  was detent.alert;
BEGIN
  SELECT a.* INTO was FROM detent.alert a WHERE a.policy = p_policy AND a.scope = p_scope FOR UPDATE;
  now_state := was.state;
  changed := coalesce(was.state = 'firing' AND was.acknowledged_at IS NULL, false);
  IF changed THEN
    t := greatest(t, was.last_at);
    UPDATE detent.alert a SET acknowledged_at = t, acknowledged_by = p_actor, acknowledged_reason = p_reason
     WHERE a.policy = p_policy AND a.scope = p_scope;
    PERFORM detent.alert_log(p_policy, p_scope, 'firing', 'firing', 'acknowledge', p_actor, p_reason, NULL, t);
  END IF;
END $$;
