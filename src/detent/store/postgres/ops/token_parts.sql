-- The attempt and the lease that a token names; nulls for none. What is no token is refused (DT020).
CREATE OR REPLACE FUNCTION ops.token_parts(p_token text, OUT attempt integer, OUT lease_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, ops, pg_temp SET jit = off AS $$
BEGIN
  IF p_token IS NOT NULL THEN
    IF p_token !~ '^[0-9]{1,9}\.[0-9]{1,18}$' THEN
      PERFORM ops.refuse('DT020', format('p_token: found %L; allowed: the token of a claim, or none', left(p_token, 80)));
    END IF;
    attempt := split_part(p_token, '.', 1)::integer;
    lease_id := split_part(p_token, '.', 2)::bigint;
  END IF;
END $$;
