-- Append a line to a run as its holder: the first one makes a claimed run running. The same line again within ten seconds
-- is the same line. Refused where nobody holds the run, or another claim than the token's (DT004).
CREATE OR REPLACE FUNCTION ops.append_event(
  p_run_id text, p_level text, p_message text, p_payload jsonb DEFAULT '{}'::jsonb, p_token text DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, ops, pg_temp SET jit = off AS $$
DECLARE
  id   bigint := ops.run_number(p_run_id);
  held record;
  line record;
BEGIN
  PERFORM ops.check_text('p_level', p_level, 200);
  PERFORM ops.check_text('p_message', p_message, 65536, true);
  SELECT * INTO held FROM ops.token_parts(p_token);
  SELECT * INTO line FROM detent.ops_append_v1(id, p_level, coalesce(p_message, ''),
    ops.check_object('p_payload', p_payload, 65536), NULL, held.attempt, held.lease_id);
  IF NOT FOUND THEN
    PERFORM ops.refuse('DT008', format('there is no ops_run %s in this database (it may have been pruned)', left(p_run_id, 80)));
  ELSIF line.instead IS NOT NULL THEN
    PERFORM ops.refuse('DT004', format(
      '%s is not held by this caller: %s; only the holder of an unexpired lease may write', p_run_id, line.instead));
  END IF;
  RETURN p_run_id || '/' || line.seq;
END $$;
