-- job_start: put attempts in progress on record.
-- takes:   jobs and attempts
-- gives:   a row for each item that was refused, with what was found
-- locks:   the jobs that had not started
-- refuses: whoever is not the holder
CREATE OR REPLACE FUNCTION detent.job_start_v1(p_ids bigint[], p_attempts integer[])
RETURNS TABLE (ord integer, instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t    timestamptz := detent.clock();
  part record;
BEGIN
  FOR part IN SELECT u.attempt, array_agg(u.id) AS ids FROM unnest(p_ids, p_attempts) AS u (id, attempt) GROUP BY u.attempt
  LOOP
    UPDATE detent.job j
       SET started_at = greatest(t, j.created_at, j.leased_at, j.cancel_requested_at)
     WHERE j.id = ANY (part.ids) AND j.attempt = part.attempt AND j.state = 'running' AND j.started_at IS NULL
       AND (SELECT l.expires_at FROM detent.lease l WHERE l.id = j.lease_id) > t;
  END LOOP;
  RETURN QUERY
    SELECT u.ord::integer, detent.holder_lost(j, u.attempt, t)
      FROM unnest(p_ids, p_attempts) WITH ORDINALITY AS u (id, attempt, ord)
      LEFT JOIN LATERAL (SELECT k.* FROM detent.job k WHERE k.id = u.id) j ON true
     WHERE detent.holder_lost(j, u.attempt, t) IS NOT NULL;
END $$;
