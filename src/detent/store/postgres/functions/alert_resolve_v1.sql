-- alert_resolve: it is well again.
-- takes:   the policy and what of it, a sentence, for how many seconds it must have been so, who says it
-- gives:   the state it is in, and whether that changed
-- locks:   the alert's row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_resolve_v1(
  p_policy text, p_scope text, p_message text, p_calm double precision DEFAULT 0, p_actor text DEFAULT 'system',
  OUT now_state text, OUT changed boolean
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t    timestamptz := detent.clock();
  was  detent.alert;
  told text := left(p_message, 2000);
BEGIN
  SELECT a.* INTO was FROM detent.alert a
   WHERE a.policy = p_policy AND a.scope = p_scope AND a.state = 'firing' FOR UPDATE;
  changed := false;
  now_state := CASE WHEN was.policy IS NULL THEN 'resolved' ELSE 'firing' END;
  t := greatest(t, was.last_at);
  IF was.policy IS NULL OR t - was.last_at < make_interval(secs => p_calm) THEN
    RETURN;
  END IF;
  UPDATE detent.alert a SET state = 'resolved', resolved_at = t, told_at = t
   WHERE a.policy = p_policy AND a.scope = p_scope;
  PERFORM detent.alert_log(p_policy, p_scope, 'firing', 'resolved', 'resolve', p_actor, told, NULL, t);
  PERFORM detent.alert_tell(p_policy, p_scope, 'resolved', told, t);
  now_state := 'resolved';
  changed := true;
END $$;
