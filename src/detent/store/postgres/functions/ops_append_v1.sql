-- ops_append: append a line to an ops run as its holder; a sign of life.
-- takes:   the run's job, level, message, payload, a key; of which attempt and lease (null: the current holder's)
-- gives:   where the line stands and whether it is new, or what was found instead of the holder; no row: no such run
-- locks:   the job, with its ready row first, then its lease
-- refuses: whoever is not the holder
CREATE OR REPLACE FUNCTION detent.ops_append_v1(
  p_job_id bigint, p_level text, p_message text, p_payload text DEFAULT NULL, p_key text DEFAULT NULL,
  p_attempt integer DEFAULT NULL, p_lease_id bigint DEFAULT NULL
) RETURNS TABLE (seq integer, created boolean, attempt integer, instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
  t timestamptz := detent.clock();
  j detent.job := detent.job_lock(p_job_id);
BEGIN
  IF j.task IS DISTINCT FROM 'ops.run' THEN
    RETURN;
  END IF;
  attempt := coalesce(p_attempt, j.attempt);
  IF p_lease_id IS DISTINCT FROM j.lease_id AND p_lease_id IS NOT NULL THEN
    instead := 'another claim has it';
  ELSE
    SELECT a.seq, a.created, a.instead INTO seq, created, instead
      FROM detent.event_append_v1(ARRAY[p_job_id], ARRAY[attempt], ARRAY[p_level], ARRAY[p_message], ARRAY[p_payload],
                                  ARRAY[p_key]) a;
  END IF;
  IF instead IS NULL THEN
    UPDATE detent.lease SET expires_at = greatest(expires_at, t + interval '600 seconds') WHERE id = j.lease_id;
  END IF;
  RETURN NEXT;
END $$;
