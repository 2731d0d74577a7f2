-- schedule_fire: deal with the ticks of a schedule. The jobs are enqueued by the caller in the same transaction.
-- takes:   the schedule, where it is believed to stand, the ticks and their jobs (null: skipped), where it stands next
-- gives:   the ticks that nobody has dealt with before; null where somebody else was first
-- locks:   the schedule's row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.schedule_fire_v1(
  p_name text, p_expected timestamptz, p_fire_ats timestamptz[], p_job_ids bigint[], p_next_at timestamptz
) RETURNS timestamptz[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  t     timestamptz := detent.clock();
  fresh timestamptz[];
BEGIN
  UPDATE detent.schedule s
     SET next_at = p_next_at, last_at = coalesce((SELECT max(u.at) FROM unnest(p_fire_ats) AS u (at)), s.last_at)
   WHERE s.name = p_name AND s.next_at = p_expected AND s.paused_at IS NULL;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  WITH made AS (
    INSERT INTO detent.schedule_fire (schedule, fire_at, job_id, at)
      SELECT p_name, u.fire_at, u.job_id, t FROM unnest(p_fire_ats, p_job_ids) AS u (fire_at, job_id)
      ON CONFLICT (schedule, fire_at) DO NOTHING
    RETURNING fire_at
  )
  SELECT coalesce(array_agg(m.fire_at), '{}') INTO fresh FROM made m;
  DELETE FROM detent.schedule_fire f WHERE f.schedule = p_name AND f.fire_at < t - interval '30 days';
  RETURN fresh;
END $$;
