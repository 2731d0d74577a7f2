-- job_abort: end attempts that did not succeed.
-- takes:   jobs, attempts, outcomes, errors, seconds until due again, whether fatal; the worker's name; and how many
--          microseconds after the claim the functions were called (null: they were not, or that is not known)
-- gives:   one row per item: the outcome on record and the state it led to, or what was found instead of the holder;
--          `committed` where the effect has happened
-- locks:   the jobs, by id; after a throttled one its limit
-- refuses: whoever is not the holder; a committed attempt
CREATE OR REPLACE FUNCTION detent.job_abort_v2(
  p_ids bigint[], p_attempts integer[], p_outcomes text[], p_errors text[], p_delays double precision[],
  p_fatals boolean[], p_worker text, p_begun bigint[]
) RETURNS TABLE (ord integer, outcome text, state text, committed boolean, instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
  goes_back boolean := false;
  t    timestamptz := detent.clock();
  item record;
  j    detent.job;
BEGIN
  FOR item IN
    SELECT u.* FROM unnest(p_ids, p_attempts, p_outcomes, p_errors, p_delays, p_fatals, p_begun) WITH ORDINALITY
      AS u (id, attempt, outcome, error, delay, fatal, begun, ord) ORDER BY u.id, u.ord
  LOOP
    ord := item.ord;
    outcome := NULL;
    state := NULL;
    committed := false;
    instead := NULL;
    SELECT k.* INTO j FROM detent.job k WHERE k.id = item.id FOR UPDATE;
    SELECT e.outcome, e.next_state INTO outcome, state FROM detent.execution e
     WHERE e.job_id = item.id AND e.attempt = item.attempt AND e.outcome = item.outcome;
    IF outcome IS NULL THEN
      committed := coalesce(j.state = 'running' AND j.attempt = item.attempt AND j.committed_at IS NOT NULL, false);
      IF NOT committed THEN
        instead := detent.holder_lost(j, item.attempt, t);
        IF instead IS NULL THEN
          IF item.begun IS NOT NULL THEN
            j.started_at := greatest(j.leased_at, least(
              j.started_at, detent.job_now(j, t), j.leased_at + item.begun * interval '1 microsecond'));
          END IF;
          SELECT a.outcome, a.state INTO outcome, state
            FROM detent.attempt_abort(j, p_worker, item.outcome, item.error, item.delay, item.fatal, t) a;
          goes_back := goes_back OR (state = 'pending' AND item.delay <= 0);
          IF item.outcome = 'throttled' THEN
            PERFORM detent.limit_throttled(j, item.delay, t);
          END IF;
        END IF;
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
  IF goes_back THEN
    PERFORM detent.wake_waiters(false);
  END IF;
END $$;
