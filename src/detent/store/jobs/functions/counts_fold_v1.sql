-- counts_fold: add what has changed to the counts of jobs at rest, and to the figures of the hour.
-- takes:   how many batches of jobs that succeeded together, at most; and at most fifty times as many other moves
-- gives:   how many were added
-- locks:   the changes it adds, and their counts, in order; it passes over changes that others hold. It waits while jobs are
--          deleted
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.counts_fold_v1(p_limit integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  folded integer;
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
  ), done AS MATERIALIZED (
    SELECT j.tenant, j.queue, j.task, j.hour, detent.duration_bucket(j.ran_us) AS bucket, count(*) AS jobs, sum(j.held_us) AS held_us,
           max(j.held_us) AS held_us_max, coalesce(sum(j.ran_us), 0) AS ran_us, coalesce(max(j.ran_us), 0) AS ran_us_max,
           sum(j.waited_us) AS waited_us, max(j.waited_us) AS waited_us_max
      FROM (SELECT k.tenant, k.queue, k.task, date_bin('1 hour', k.finished_at, 'epoch') AS hour,
                   detent.micros_between(k.leased_at, k.finished_at) AS held_us,
                   CASE WHEN k.started_at IS NOT NULL THEN detent.micros_between(k.started_at, k.finished_at) END AS ran_us,
                   detent.micros_between(greatest(k.created_at, k.due_at), k.leased_at) AS waited_us
              FROM ended e CROSS JOIN LATERAL unnest(e.job_ids) AS u (job_id)
              JOIN detent.job k ON k.id = u.job_id AND k.state = 'succeeded' OFFSET 0) j
     GROUP BY j.tenant, j.queue, j.task, j.hour, detent.duration_bucket(j.ran_us)
  ), added AS (
    INSERT INTO detent.finished_count AS c (tenant, queue, task, state, jobs)
      SELECT g.tenant, g.queue, g.task, g.state, sum(g.jobs)
        FROM (SELECT m.* FROM moved m
              UNION ALL
              SELECT d.tenant, d.queue, d.task, 'succeeded', d.jobs FROM done d) g
       GROUP BY g.tenant, g.queue, g.task, g.state ORDER BY g.tenant, g.queue, g.task, g.state
      ON CONFLICT (tenant, queue, task, state) DO UPDATE SET jobs = c.jobs + excluded.jobs
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
              SELECT d.hour, d.task, 'running', 'succeeded', 'done', d.bucket, d.jobs, d.held_us, d.held_us_max, d.ran_us,
                     d.ran_us_max, d.waited_us, d.waited_us_max
                FROM done d WHERE d.hour IS NOT NULL) x
       GROUP BY x.hour, x.task, x.from_state, x.to_state, x.outcome, x.bucket
       ORDER BY x.hour, x.task, x.from_state, x.to_state, x.outcome, x.bucket
      ON CONFLICT (hour, task, from_state, to_state, outcome, bucket) DO UPDATE
        SET moves = h.moves + excluded.moves,
            held_us = h.held_us + excluded.held_us, held_us_max = greatest(h.held_us_max, excluded.held_us_max),
            ran_us = h.ran_us + excluded.ran_us, ran_us_max = greatest(h.ran_us_max, excluded.ran_us_max),
            waited_us = h.waited_us + excluded.waited_us, waited_us_max = greatest(h.waited_us_max, excluded.waited_us_max)
  )
  SELECT (SELECT count(*) FROM moved) + (SELECT count(*) FROM ended) + (SELECT count(*) FROM left_states) INTO folded;
  -- Figures are kept for 31 days. One hour at a time goes, so the work is bounded.
  DELETE FROM detent.transition_hour h
   WHERE h.hour = (SELECT min(o.hour) FROM detent.transition_hour o) AND h.hour < detent.clock() - interval '744 hours';
  RETURN folded;
END $$;
