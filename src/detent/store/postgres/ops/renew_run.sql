-- Extend the lease of a run as its holder, without a line among its events: for a build that is silent for long. Gives the
-- status of the run. Refused where nobody holds the run, or another claim than the token's (DT004).
CREATE OR REPLACE FUNCTION ops.renew_run(p_run_id text, p_token text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, ops, pg_temp SET jit = off AS $$
DECLARE
  id    bigint := ops.run_number(p_run_id);
  held  record;
  found_run record;
BEGIN
  SELECT * INTO held FROM ops.token_parts(p_token);
  SELECT * INTO found_run FROM detent.ops_renew_v1(id, held.attempt, held.lease_id);
  IF NOT FOUND THEN
    PERFORM ops.refuse('DT008', format('there is no ops_run %s in this database (it may have been pruned)', left(p_run_id, 80)));
  ELSIF found_run.instead IS NOT NULL THEN
    PERFORM ops.refuse('DT004', format(
      '%s is not held by this caller: %s; only the holder of an unexpired lease may write', p_run_id, found_run.instead));
  END IF;
  RETURN found_run.state;
END $$;
