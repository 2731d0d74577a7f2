-- End a run as success, failed or cancelled; its metadata is merged with what it was queued with. The same end again
-- changes nothing. Gives the status it has now. Refused where the lifecycle has no such move (DT002), and to whoever is not
-- the holder (DT004); anybody without a token may cancel.
CREATE OR REPLACE FUNCTION ops.finish_run(
  p_run_id text, p_status text, p_metadata jsonb DEFAULT '{}'::jsonb, p_token text DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, ops, pg_temp SET jit = off AS $$
DECLARE
  id       bigint := ops.run_number(p_run_id);
  metadata text := ops.check_object('p_metadata', p_metadata, 16384);
  held     record;
  ended    record;
BEGIN
  IF p_status IS NULL OR p_status NOT IN ('success', 'failed', 'cancelled') THEN
    PERFORM ops.refuse('DT020', format('p_status: found %L; allowed: success, failed, cancelled', left(p_status, 80)));
  END IF;
  SELECT * INTO held FROM ops.token_parts(p_token);
  SELECT * INTO ended FROM detent.ops_finish_v1(
    id, p_status, metadata, left(coalesce(nullif(metadata::jsonb ->> 'cancelled_by', ''), 'client'), 200),
    left(metadata::jsonb ->> 'reason', 2000), left(metadata::jsonb ->> 'error', 65536), held.attempt, held.lease_id);
  IF NOT FOUND THEN
    PERFORM ops.refuse('DT008', format('there is no ops_run %s in this database (it may have been pruned)', left(p_run_id, 80)));
  ELSIF ended.instead IS NOT NULL THEN
    PERFORM ops.refuse('DT004', format(
      '%s is not held by this caller: %s; only the holder of an unexpired lease may write', p_run_id, ended.instead));
  ELSIF ended.refused THEN
    PERFORM ops.refuse('DT002', format('ops_run %s cannot go from %s to %s; allowed from %s: %s', p_run_id, ended.was,
      p_status, ended.was, CASE ended.was WHEN 'queued' THEN 'claimed, cancelled' WHEN 'claimed' THEN 'running, cancelled'
        WHEN 'running' THEN 'success, failed, cancelled' ELSE 'nothing, it is final' END));
  END IF;
  RETURN ended.state;
END $$;
