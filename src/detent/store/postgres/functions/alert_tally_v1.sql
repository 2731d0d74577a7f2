-- alert_tally: count the jobs that came to rest since the last time.
-- takes:   how many jobs to look at; where more are held, some stand for all
-- gives:   how many were counted
-- locks:   the row that says up to when was counted
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
  -- The first look counts what ended shortly before it: jobs may have failed before there was a worker to look.
  INSERT INTO detent.alert_look (name, at) VALUES ('tally', t - interval '15 minutes') ON CONFLICT (name) DO NOTHING;
  SELECT k.at INTO since FROM detent.alert_look k WHERE k.name = 'tally' FOR UPDATE;
  IF t <= since THEN
    RETURN 0;
  END IF;
  SELECT greatest(1, ceil(coalesce(sum(cardinality(l.job_ids)), 0) / p_jobs_max::numeric)) INTO every FROM detent.lease l;
  -- Chosen by a number that has nothing to do with the order in which jobs came: every second one may well be of the
  -- same task.
  WITH rested AS (
    SELECT j.queue, j.task, every * count(*) FILTER (WHERE j.state = 'succeeded') AS succeeded,
           every * count(*) FILTER (WHERE j.state <> 'succeeded') AS failed
      FROM detent.lease l CROSS JOIN LATERAL unnest(l.job_ids) AS held (job_id)
      JOIN detent.job j ON j.id = held.job_id AND j.lease_id = l.id
     WHERE held.job_id % 1000003 * 2654435761 / 65536 % every = 0
       AND j.finished_at > since AND j.finished_at <= t AND j.state IN ('succeeded', 'failed', 'quarantined')
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
