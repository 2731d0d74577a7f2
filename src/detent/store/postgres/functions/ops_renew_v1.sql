-- ops_renew: extend the lease of an ops run as its holder; a sign of life without a line.
-- takes:   the run's job; of which attempt and lease (null: the current holder's)
-- gives:   the state it is in, or what was found instead of the holder; no row: no such run
-- locks:   the job, with its ready row first, then its lease
-- refuses: whoever is not the holder
CREATE OR REPLACE FUNCTION detent.ops_renew_v1(
  p_job_id bigint, p_attempt integer DEFAULT NULL, p_lease_id bigint DEFAULT NULL
) RETURNS TABLE (state text, attempt integer, instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
  t timestamptz := detent.clock();
  j detent.job := detent.job_lock(p_job_id);
BEGIN
  IF j.task IS DISTINCT FROM 'ops.run' THEN
    RETURN;
  END IF;
  state := detent.ops_state(j.state, j.started_at);
  attempt := coalesce(p_attempt, j.attempt);
  IF p_lease_id IS NOT NULL AND (p_lease_id IS DISTINCT FROM j.lease_id OR attempt <> j.attempt) THEN
    instead := 'another claim has it';
  ELSE
    instead := detent.holder_lost(j, attempt, t);
  END IF;
  IF instead IS NULL THEN
    UPDATE detent.lease SET expires_at = greatest(expires_at, t + interval '600 seconds') WHERE id = j.lease_id;
  END IF;
  RETURN NEXT;
END $$;
