-- rates_join: make one row of the minutes of an hour that ended more than six hours ago, and delete the figures of an hour that is
-- older than 31 days. One hour at a time, so the work is bounded. It skips rows that others hold, and does nothing if another does it.
CREATE OR REPLACE FUNCTION detent.rates_join() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  first_minute constant timestamptz := (SELECT min(r.at) FROM detent.transition_rate r WHERE r.seconds = 60);
  first_hour   constant timestamptz := (SELECT min(h.hour) FROM detent.transition_hour h);
  joined       constant timestamptz := date_bin('1 hour', first_minute, 'epoch');
BEGIN
  IF joined < date_bin('1 hour', detent.clock() - interval '6 hours', 'epoch')
     AND pg_try_advisory_xact_lock(hashtextextended('detent.rates_join', 0)) THEN
    WITH gone AS (
      DELETE FROM detent.transition_rate WHERE ctid = ANY (ARRAY(
        SELECT r.ctid FROM detent.transition_rate r
         WHERE r.seconds = 60 AND r.at >= joined AND r.at < joined + interval '1 hour' FOR UPDATE SKIP LOCKED))
      RETURNING to_state, outcome, bucket, moves, us, us_max
    )
    INSERT INTO detent.transition_rate AS r (seconds, at, to_state, outcome, bucket, moves, us, us_max)
      SELECT 3600, joined, g.to_state, g.outcome, g.bucket, sum(g.moves), sum(g.us), max(g.us_max)
        FROM gone g GROUP BY g.to_state, g.outcome, g.bucket ORDER BY g.to_state, g.outcome, g.bucket
      ON CONFLICT (seconds, at, to_state, outcome, bucket) DO UPDATE
        SET moves = r.moves + excluded.moves, us = r.us + excluded.us, us_max = greatest(r.us_max, excluded.us_max);
  END IF;
  IF first_hour < detent.clock() - interval '744 hours' THEN
    DELETE FROM detent.transition_hour h WHERE h.hour = first_hour;
    DELETE FROM detent.transition_rate r
     WHERE r.seconds IN (60, 3600) AND r.at >= first_hour AND r.at < first_hour + interval '1 hour';
  END IF;
END $$;

-- counts_fold: add what has changed to the counts of jobs at rest, to the figures of the hour, and to the rates of the minute;
--              put successes of announced tasks on the list of ends that webhooks tell of.
-- takes:   how many batches of jobs that succeeded together, at most; and at most fifty times as many other moves
-- gives:   how many were added
-- locks:   the changes it adds, and their counts, in order; it passes over changes that others hold. It waits while jobs are
--          deleted
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.counts_fold_v1(p_limit integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET enable_memoize = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  folded    integer;
  announces boolean := EXISTS (SELECT 1 FROM detent.announced_task);
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtextextended('detent.counts_fold', 0));
  WITH moved AS (
    DELETE FROM detent.finished_delta WHERE n = ANY (ARRAY(
      SELECT d.n FROM detent.finished_delta d ORDER BY d.n LIMIT 50 * p_limit FOR UPDATE SKIP LOCKED))
    RETURNING tenant, queue, task, state, jobs
  ), ended AS (
    DELETE FROM detent.succeeded_batch WHERE n = ANY (ARRAY(
      SELECT b.n FROM detent.succeeded_batch b ORDER BY b.n LIMIT p_limit FOR UPDATE SKIP LOCKED))
    RETURNING job_ids
  ), announced AS (
    INSERT INTO detent.failure_report (job_id, attempt, task)
      SELECT l.id, l.attempt, l.task
        FROM ended e CROSS JOIN LATERAL unnest(e.job_ids) AS u (job_id)
       CROSS JOIN LATERAL (SELECT k.id, k.attempt, k.task FROM detent.job k
                            WHERE k.id = u.job_id AND k.state = 'succeeded' OFFSET 0) l
        JOIN detent.announced_task a ON a.task = l.task
       WHERE announces ORDER BY l.id
      ON CONFLICT DO NOTHING
  ), done AS MATERIALIZED (
    -- Twice: by task and how long the function ran; and by how long the job had waited.
    SELECT j.tenant, j.queue, j.task, j.minute, j.bucket, j.waited_bucket, count(*) AS jobs, sum(j.held_us) AS held_us,
           max(j.held_us) AS held_us_max, coalesce(sum(j.ran_us), 0) AS ran_us, coalesce(max(j.ran_us), 0) AS ran_us_max,
           sum(j.waited_us) AS waited_us, max(j.waited_us) AS waited_us_max
      FROM (SELECT k.*, detent.duration_bucket(k.ran_us) AS bucket, detent.duration_bucket(k.waited_us) AS waited_bucket
              FROM (SELECT l.tenant, l.queue, l.task, date_bin('1 minute', l.finished_at, 'epoch') AS minute,
                           detent.micros_between(l.leased_at, l.finished_at) AS held_us,
                           CASE WHEN l.started_at IS NOT NULL THEN detent.micros_between(l.started_at, l.finished_at) END AS ran_us,
                           detent.micros_between(greatest(l.created_at, l.due_at), l.leased_at) AS waited_us
                      FROM ended e CROSS JOIN LATERAL unnest(e.job_ids) AS u (job_id)
                     -- OFFSET 0: each job by its id, also if the plan was made when there were few jobs.
                     CROSS JOIN LATERAL (
                       SELECT x.tenant, x.queue, x.task, x.created_at, x.due_at, x.leased_at, x.started_at, x.finished_at
                         FROM detent.job x WHERE x.id = u.job_id AND x.state = 'succeeded' OFFSET 0) l OFFSET 0) k OFFSET 0) j
     GROUP BY GROUPING SETS ((j.tenant, j.queue, j.task, j.minute, j.bucket), (j.minute, j.waited_bucket))
  ), added AS (
    INSERT INTO detent.finished_count AS c (tenant, queue, task, state, jobs)
      SELECT g.tenant, g.queue, g.task, g.state, sum(g.jobs)
        FROM (SELECT m.* FROM moved m
              UNION ALL
              SELECT d.tenant, d.queue, d.task, 'succeeded', d.jobs FROM done d WHERE d.task IS NOT NULL) g
       GROUP BY g.tenant, g.queue, g.task, g.state ORDER BY g.tenant, g.queue, g.task, g.state
      ON CONFLICT (tenant, queue, task, state) DO UPDATE SET jobs = c.jobs + excluded.jobs
  ), totalled AS (
    INSERT INTO detent.finished_total AS c (queue, task, state, jobs)
      SELECT g.queue, g.task, g.state, sum(g.jobs)
        FROM (SELECT m.queue, m.task, m.state, m.jobs FROM moved m
              UNION ALL
              SELECT d.queue, d.task, 'succeeded', d.jobs FROM done d WHERE d.task IS NOT NULL) g
       GROUP BY g.queue, g.task, g.state ORDER BY g.queue, g.task, g.state
      ON CONFLICT (queue, task, state) DO UPDATE SET jobs = c.jobs + excluded.jobs
  ), left_states AS (
    DELETE FROM detent.transition_delta WHERE n = ANY (ARRAY(
      SELECT d.n FROM detent.transition_delta d ORDER BY d.n LIMIT 50 * p_limit FOR UPDATE SKIP LOCKED))
    RETURNING at, task, from_state, to_state, outcome, held_us, ran_us, waited_us
  ), figured AS (
    INSERT INTO detent.transition_hour AS h (hour, task, from_state, to_state, outcome, bucket, moves, held_us, held_us_max, ran_us,
                                             ran_us_max, waited_us, waited_us_max)
      SELECT x.hour, x.task, x.from_state, x.to_state, x.outcome, x.bucket, sum(x.moves), sum(x.held_us), max(x.held_us_max),
             sum(x.ran_us), max(x.ran_us_max), sum(x.waited_us), max(x.waited_us_max)
        FROM (SELECT date_bin('1 hour', d.at, 'epoch') AS hour, d.task, d.from_state, d.to_state, d.outcome,
                     detent.duration_bucket(d.ran_us) AS bucket, 1 AS moves, d.held_us, d.held_us AS held_us_max,
                     coalesce(d.ran_us, 0) AS ran_us, coalesce(d.ran_us, 0) AS ran_us_max, d.waited_us, d.waited_us AS waited_us_max
                FROM left_states d
              UNION ALL
              SELECT date_bin('1 hour', d.minute, 'epoch'), d.task, 'running', 'succeeded', 'done', d.bucket, d.jobs, d.held_us,
                     d.held_us_max, d.ran_us, d.ran_us_max, d.waited_us, d.waited_us_max
                FROM done d WHERE d.task IS NOT NULL AND d.minute IS NOT NULL) x
       GROUP BY x.hour, x.task, x.from_state, x.to_state, x.outcome, x.bucket
       ORDER BY x.hour, x.task, x.from_state, x.to_state, x.outcome, x.bucket
      ON CONFLICT (hour, task, from_state, to_state, outcome, bucket) DO UPDATE
        SET moves = h.moves + excluded.moves,
            held_us = h.held_us + excluded.held_us, held_us_max = greatest(h.held_us_max, excluded.held_us_max),
            ran_us = h.ran_us + excluded.ran_us, ran_us_max = greatest(h.ran_us_max, excluded.ran_us_max),
            waited_us = h.waited_us + excluded.waited_us, waited_us_max = greatest(h.waited_us_max, excluded.waited_us_max)
  ), rated AS (
    INSERT INTO detent.transition_rate AS r (seconds, at, to_state, outcome, bucket, moves, us, us_max)
      SELECT 60, x.minute, x.to_state, x.outcome, x.bucket, sum(x.moves), sum(x.us), max(x.us_max)
        FROM (SELECT date_bin('1 minute', d.at, 'epoch') AS minute, d.to_state, d.outcome, detent.duration_bucket(d.ran_us) AS bucket,
                     1 AS moves, coalesce(d.ran_us, 0) AS us, coalesce(d.ran_us, 0) AS us_max
                FROM left_states d
              UNION ALL
              SELECT date_bin('1 minute', d.at, 'epoch'), 'running', '', detent.duration_bucket(d.waited_us), 1, d.waited_us, d.waited_us
                FROM left_states d WHERE d.outcome <> ''
              UNION ALL
              SELECT d.minute, 'succeeded', 'done', d.bucket, d.jobs, d.ran_us, d.ran_us_max
                FROM done d WHERE d.task IS NOT NULL AND d.minute IS NOT NULL
              UNION ALL
              SELECT d.minute, 'running', '', d.waited_bucket, d.jobs, d.waited_us, d.waited_us_max
                FROM done d WHERE d.task IS NULL AND d.minute IS NOT NULL) x
       GROUP BY x.minute, x.to_state, x.outcome, x.bucket ORDER BY x.minute, x.to_state, x.outcome, x.bucket
      ON CONFLICT (seconds, at, to_state, outcome, bucket) DO UPDATE
        SET moves = r.moves + excluded.moves, us = r.us + excluded.us, us_max = greatest(r.us_max, excluded.us_max)
  )
  SELECT (SELECT count(*) FROM moved) + (SELECT count(*) FROM ended) + (SELECT count(*) FROM left_states) INTO folded;
  PERFORM detent.rates_join();
  RETURN folded;
END $$;
