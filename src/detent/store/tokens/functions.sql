-- token_create: create a token.
-- takes:   its columns, who, why
-- gives:   the token; no row if a token of that name has not been revoked
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.token_create_v1(
  p_id bigint, p_name text, p_hash text, p_role text, p_tenant text, p_expires_at timestamptz, p_actor text, p_reason text
) RETURNS SETOF detent.token
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  INSERT INTO detent.token (id, name, hash, role, tenant, expires_at, created_at, created_by)
    VALUES (p_id, p_name, p_hash, p_role, p_tenant, p_expires_at, t, p_actor)
    ON CONFLICT DO NOTHING;
  IF FOUND THEN
    INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, at)
      VALUES (coalesce(p_tenant, ''), 'token', p_name, NULL, 'usable', 'create', p_actor, p_reason, t);
  END IF;
  RETURN QUERY SELECT k.* FROM detent.token k WHERE k.id = p_id AND k.hash = p_hash;
END $$;

-- token_revoke: revoke a token for good.
-- takes:   its name, who, why
-- gives:   the state it was in: usable or revoked; null if there is no token of that name
-- locks:   its row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.token_revoke_v1(p_name text, p_actor text, p_reason text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t   timestamptz := detent.clock();
  was detent.token;
BEGIN
  UPDATE detent.token k SET revoked_at = greatest(t, k.created_at), revoked_by = p_actor
   WHERE k.name = p_name AND k.revoked_at IS NULL RETURNING k.* INTO was;
  IF FOUND THEN
    INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, at)
      VALUES (coalesce(was.tenant, ''), 'token', p_name, 'usable', 'revoked', 'revoke', p_actor, p_reason, t);
    RETURN 'usable';
  END IF;
  RETURN (SELECT 'revoked' FROM detent.token k WHERE k.name = p_name LIMIT 1);
END $$;

-- token_list: tokens, the highest id first.
-- takes:   whether revoked ones too, below which id, how many at most
-- gives:   tokens
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.token_list_v1(p_revoked boolean, p_before bigint, p_limit integer) RETURNS SETOF detent.token
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
BEGIN
  IF p_revoked THEN
    RETURN QUERY SELECT k.* FROM detent.token k WHERE k.id < p_before ORDER BY k.id DESC LIMIT p_limit;
  ELSE
    RETURN QUERY
      SELECT k.* FROM detent.token k WHERE k.id < p_before AND k.revoked_at IS NULL ORDER BY k.id DESC LIMIT p_limit;
  END IF;
END $$;

-- token_find: the token with a hash.
-- takes:   the hash
-- gives:   the token, also if it has expired or is revoked; no row if there is none
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.token_find_v1(p_hash text) RETURNS SETOF detent.token
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT k.* FROM detent.token k WHERE k.hash = p_hash;
END $$;

-- token_used: note that a token is used.
-- takes:   the token
-- gives:   whether it was noted: at most once a minute
-- locks:   its row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.token_used_v1(p_id bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  UPDATE detent.token k SET last_used_at = t
   WHERE k.id = p_id AND (k.last_used_at IS NULL OR k.last_used_at <= t - interval '1 minute');
  RETURN FOUND;
END $$;
