-- identity_renew: give the database a new random identity, for the ids that are reserved from now on.
-- takes:   who, why
-- gives:   the new identity
-- locks:   the identities
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.identity_renew_v1(p_actor text, p_reason text DEFAULT NULL) RETURNS SETOF detent.identity
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t    timestamptz := detent.clock();
  was  detent.identity;
  made detent.identity;
BEGIN
  LOCK TABLE detent.identity IN EXCLUSIVE MODE;
  SELECT i.* INTO was FROM detent.identity i ORDER BY i.n DESC LIMIT 1;
  INSERT INTO detent.identity (n, identity, first_id, made_by, reason, made_at)
    VALUES (coalesce(was.n, 0) + 1, replace(gen_random_uuid()::text, '-', ''),
            CASE WHEN was.n IS NULL THEN 0 ELSE detent.ids_reserve_v1(1) END, p_actor, p_reason, t)
    RETURNING * INTO made;
  INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    VALUES ('database', 'identity', was.identity, made.identity, 'renew', p_actor, p_reason, t);
  RETURN NEXT made;
END $$;
