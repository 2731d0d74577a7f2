-- alert_tally: count the jobs that ended since the last tally.
-- takes:   how many jobs to read; if there are more, a sample is read
-- gives:   how many were counted
-- locks:   the row with the time of the last tally
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_tally_v1(p_jobs_max integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
DECLARE
  t       timestamptz := detent.clock();
  since   timestamptz;
  every   bigint;
  counted bigint;
BEGIN
  -- The first tally also counts what ended shortly before it: jobs may have failed before a worker tallied.
  INSERT INTO detent.alert_look (name, at) VALUES ('tally', t - interval '15 minutes') ON CONFLICT (name) DO NOTHING;
  SELECT k.at INTO since FROM detent.alert_look k WHERE k.name = 'tally' FOR UPDATE;
  IF t <= since THEN
    RETURN 0;
  END IF;
  SELECT greatest(1, ceil(coalesce(sum(cardinality(l.job_ids)), 0) / p_jobs_max::numeric)) INTO every FROM detent.lease l;
  -- The sample is chosen by a hash of the ids: every second job may well be of the
  -- same task.
  WITH rested AS (
    SELECT j.queue, j.task, every * count(*) FILTER (WHERE j.state = 'succeeded') AS succeeded,
           every * count(*) FILTER (WHERE j.state <> 'succeeded') AS failed
      FROM detent.lease l CROSS JOIN LATERAL unnest(l.job_ids) AS held (job_id)
     CROSS JOIN LATERAL (SELECT k.queue, k.task, k.state FROM detent.job k
                          WHERE k.id = held.job_id AND k.lease_id = l.id AND k.finished_at > since AND k.finished_at <= t
                            AND k.state IN ('succeeded', 'failed', 'quarantined') OFFSET 0) j
     WHERE held.job_id % 1000003 * 2654435761 / 65536 % every = 0
     GROUP BY j.queue, j.task
    UNION ALL
    SELECT j.queue, j.task, 0, count(*)
      FROM detent.execution e JOIN detent.job j ON j.id = e.job_id
     WHERE e.outcome = 'expired' AND e.next_state <> 'pending' AND e.next_state <> 'cancelled'
       AND e.aborted_at > since AND e.aborted_at <= t
     GROUP BY j.queue, j.task
  ), told AS (
    INSERT INTO detent.alert_tally AS a (minute, queue, task, succeeded, failed)
      SELECT date_trunc('minute', t, 'UTC'), r.queue, r.task, sum(r.succeeded), sum(r.failed)
        FROM rested r GROUP BY r.queue, r.task
      ON CONFLICT (minute, queue, task) DO UPDATE
        SET succeeded = a.succeeded + excluded.succeeded, failed = a.failed + excluded.failed
  )
  SELECT coalesce(sum(r.succeeded + r.failed), 0) INTO counted FROM rested r;
  UPDATE detent.alert_look k SET at = t WHERE k.name = 'tally';
  DELETE FROM detent.alert_tally a WHERE a.minute < t - interval '1 day';
  RETURN counted;
END $$;

-- alert_figures: the figures of a measure.
-- takes:   the measure, by what (whole, queue, task, limit), how many seconds back
-- gives:   by scope the value, and the number of jobs behind it; counts end at 10,000
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_figures_v1(p_measure text, p_each text, p_window_seconds double precision)
RETURNS TABLE (of_scope text, value double precision, of_count bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
DECLARE
  t       timestamptz := detent.clock();
  earlier timestamptz := t - make_interval(secs => p_window_seconds);
BEGIN
  CASE p_measure
  WHEN 'success_rate' THEN
    RETURN QUERY
      SELECT x.k, sum(x.succeeded)::double precision / sum(x.succeeded + x.failed)::double precision,
             sum(x.succeeded + x.failed)::bigint
        FROM (SELECT CASE p_each WHEN 'queue' THEN a.queue WHEN 'task' THEN a.task ELSE '' END AS k,
                     a.succeeded, a.failed
                FROM detent.alert_tally a WHERE a.minute > earlier) x
       GROUP BY x.k HAVING sum(x.succeeded + x.failed) > 0 ORDER BY x.k COLLATE "C";
  WHEN 'dead_letters' THEN
    RETURN QUERY
      SELECT x.k, count(*)::double precision, count(*)
        FROM (SELECT CASE p_each WHEN 'queue' THEN d.queue WHEN 'task' THEN d.task ELSE '' END AS k
                FROM detent.dead d LIMIT 10000) x
       GROUP BY x.k ORDER BY x.k COLLATE "C";
  WHEN 'throttled' THEN
    RETURN QUERY
      SELECT x.k, count(*)::double precision, count(*)
        FROM (SELECT CASE p_each WHEN 'queue' THEN j.queue WHEN 'task' THEN j.task ELSE '' END AS k
                FROM (SELECT e.job_id FROM detent.execution e
                       WHERE e.outcome = 'throttled' AND e.aborted_at > earlier
                       ORDER BY e.aborted_at DESC LIMIT 10000) troubled
                JOIN detent.job j ON j.id = troubled.job_id) x
       GROUP BY x.k ORDER BY x.k COLLATE "C";
  WHEN 'breaker_open' THEN
    RETURN QUERY
      SELECT l.key, 1::double precision, 1::bigint FROM detent.rate_limit l
       WHERE l.open_until IS NOT NULL ORDER BY l.key COLLATE "C" LIMIT 10000;
  WHEN 'oldest_ready' THEN
    RETURN QUERY
      WITH RECURSIVE standing (lane_id, ready_at) AS (
        (SELECT r.lane_id, r.ready_at FROM detent.ready r ORDER BY r.lane_id, r.ready_at LIMIT 1)
        UNION ALL
        SELECT n.lane_id, n.ready_at
          FROM standing s CROSS JOIN LATERAL (
            SELECT r.lane_id, r.ready_at FROM detent.ready r
             WHERE r.lane_id > s.lane_id ORDER BY r.lane_id, r.ready_at LIMIT 1) n
      )
      SELECT x.k, extract(epoch FROM t - min(x.ready_at))::double precision, count(*)
        FROM (SELECT CASE p_each WHEN 'queue' THEN l.queue WHEN 'task' THEN l.task ELSE '' END AS k, s.ready_at
                FROM (SELECT * FROM standing LIMIT 10000) s JOIN detent.lane l ON l.id = s.lane_id
               WHERE NOT EXISTS (SELECT 1 FROM detent.queue q WHERE q.name = l.queue AND q.paused_at IS NOT NULL)) x
       GROUP BY x.k ORDER BY x.k COLLATE "C";
  WHEN 'undelivered' THEN
    RETURN QUERY
      SELECT ''::text, x.n::double precision, x.n FROM (
        SELECT (SELECT count(*) FROM (SELECT 1 FROM detent.alert_notice a WHERE NOT a.spread LIMIT 10000) s)
             + (SELECT count(*) FROM (SELECT 1 FROM detent.alert_delivery d WHERE d.state = 'pending' LIMIT 10000) p) AS n) x
       WHERE x.n > 0;
  ELSE
    RETURN;
  END CASE;
END $$;

-- alert_measure: the figures of several measures.
-- takes:   for each question the measure, by what (whole, queue, task, limit), how many seconds back
-- gives:   for each question, by its number from 1 on, what alert_figures gives
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_measure_v1(p_measures text[], p_each text[], p_windows double precision[])
RETURNS TABLE (question bigint, of_scope text, value double precision, of_count bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT q.place, f.of_scope, f.value, f.of_count
      FROM unnest(p_measures, p_each, p_windows) WITH ORDINALITY AS q (measure, each_, seconds, place)
      CROSS JOIN LATERAL detent.alert_figures_v1(q.measure, q.each_, q.seconds) f;
END $$;
