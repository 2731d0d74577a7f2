-- event_append: append lines to jobs.
-- takes:   jobs, attempts (null: a note by somebody else), levels, messages, payloads, keys
-- gives:   one row per item: where the line stands and whether it is new; what was found instead of the holder, or
--          neither where there is no such job
-- locks:   the jobs, by id, each with its ready or waiting row first
-- refuses: whoever names an attempt and is not its holder; a note to a job that is not there
CREATE OR REPLACE FUNCTION detent.event_append_v1(
  p_ids bigint[], p_attempts integer[], p_levels text[], p_messages text[], p_payloads text[], p_keys text[]
) RETURNS TABLE (ord integer, seq integer, created boolean, instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
  t    timestamptz := detent.clock();
  item record;
  line record;
  last record;
  j    detent.job;
BEGIN
  FOR item IN
    SELECT u.* FROM unnest(p_ids, p_attempts, p_levels, p_messages, p_payloads, p_keys) WITH ORDINALITY
      AS u (id, attempt, level, message, payload, key, ord) ORDER BY u.id, u.ord
  LOOP
    ord := item.ord;
    seq := NULL;
    created := false;
    instead := NULL;
    IF j.id IS DISTINCT FROM item.id THEN
      j := detent.job_lock(item.id);
      SELECT coalesce(max(e.seq), 0) AS seq, max(e.at) AS at INTO last
        FROM (SELECT f.seq, f.at FROM detent.event f WHERE f.job_id = item.id ORDER BY f.seq DESC LIMIT 1) e;
    END IF;
    IF item.attempt IS NOT NULL THEN
      instead := detent.holder_lost(j, item.attempt, t);
    END IF;
    IF instead IS NOT NULL OR j.id IS NULL THEN
      RETURN NEXT;
      CONTINUE;
    END IF;
    IF item.attempt IS NOT NULL AND j.started_at IS NULL THEN
      j.started_at := detent.job_now(j, t);
      UPDATE detent.job SET started_at = j.started_at WHERE id = j.id;
    END IF;
    item.attempt := coalesce(item.attempt, j.attempt);
    IF item.key IS NOT NULL THEN
      SELECT e.seq INTO seq FROM detent.event e WHERE e.job_id = j.id AND e.key = item.key;
    ELSE
      -- Backwards from the newest line, and no further than the window: times never go back within a job.
      FOR line IN SELECT e.* FROM detent.event e WHERE e.job_id = j.id ORDER BY e.seq DESC LOOP
        EXIT WHEN line.at <= t - interval '10 seconds';
        IF line.key IS NULL AND line.attempt = item.attempt AND line.level = item.level AND line.message = item.message
           AND line.payload IS NOT DISTINCT FROM item.payload THEN
          seq := line.seq;
        END IF;
      END LOOP;
    END IF;
    IF seq IS NULL THEN
      created := true;
      last.seq := last.seq + 1;
      last.at := greatest(detent.job_now(j, t), last.at);
      seq := last.seq;
      INSERT INTO detent.event (job_id, seq, attempt, level, message, payload, key, at)
        VALUES (j.id, seq, item.attempt, item.level, item.message, item.payload, item.key, last.at);
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;
