-- Counts of jobs.

-- Jobs by tenant, queue, task and state, now. Exact: pending jobs from their places in the queue, running ones from the leases,
-- jobs at rest from the counts above.
CREATE OR REPLACE VIEW detent.job_counts AS
  SELECT l.tenant, l.queue, l.task, 'pending' AS state, sum(q.jobs)::bigint AS jobs
    FROM (SELECT r.lane_id, count(*) AS jobs FROM detent.ready r GROUP BY r.lane_id
          UNION ALL
          SELECT w.lane_id, count(*) FROM detent.waiting w GROUP BY w.lane_id) q
    JOIN detent.lane l ON l.id = q.lane_id
   GROUP BY l.tenant, l.queue, l.task
  UNION ALL
  SELECT j.tenant, j.queue, j.task, 'running', count(*)
    FROM detent.lease l CROSS JOIN LATERAL unnest(l.job_ids) AS held (job_id)
    JOIN detent.job j ON j.id = held.job_id AND j.lease_id = l.id AND j.state = 'running'
   GROUP BY j.tenant, j.queue, j.task
  UNION ALL
  SELECT f.tenant, f.queue, f.task, f.state, sum(f.jobs)::bigint
    FROM (SELECT c.tenant, c.queue, c.task, c.state, c.jobs FROM detent.finished_count c
          UNION ALL
          SELECT d.tenant, d.queue, d.task, d.state, d.jobs FROM detent.finished_delta d
          UNION ALL
          SELECT j.tenant, j.queue, j.task, 'succeeded', count(*)
            FROM detent.succeeded_batch b CROSS JOIN LATERAL unnest(b.job_ids) AS u (job_id)
            JOIN detent.job j ON j.id = u.job_id AND j.state = 'succeeded'
           GROUP BY j.tenant, j.queue, j.task) f
   GROUP BY f.tenant, f.queue, f.task, f.state HAVING sum(f.jobs) <> 0;

-- The same for all tenants together: pending jobs by the group of their lane, jobs at rest from the totals.
CREATE OR REPLACE VIEW detent.queue_counts AS
  SELECT g.queue, g.task, 'pending' AS state, sum(q.jobs)::bigint AS jobs
    FROM (SELECT r.lane_id >> 32 AS group_id, count(*) AS jobs FROM detent.ready r GROUP BY r.lane_id >> 32
          UNION ALL
          SELECT w.lane_id >> 32, count(*) FROM detent.waiting w GROUP BY w.lane_id >> 32) q
    JOIN detent.lane_group g ON g.id = q.group_id
   GROUP BY g.queue, g.task
  UNION ALL
  SELECT j.queue, j.task, 'running', count(*)
    FROM detent.lease l CROSS JOIN LATERAL unnest(l.job_ids) AS held (job_id)
    JOIN detent.job j ON j.id = held.job_id AND j.lease_id = l.id AND j.state = 'running'
   GROUP BY j.queue, j.task
  UNION ALL
  SELECT f.queue, f.task, f.state, sum(f.jobs)::bigint
    FROM (SELECT c.queue, c.task, c.state, c.jobs FROM detent.finished_total c
          UNION ALL
          SELECT d.queue, d.task, d.state, d.jobs FROM detent.finished_delta d
          UNION ALL
          SELECT j.queue, j.task, 'succeeded', count(*)
            FROM detent.succeeded_batch b CROSS JOIN LATERAL unnest(b.job_ids) AS u (job_id)
            JOIN detent.job j ON j.id = u.job_id AND j.state = 'succeeded'
           GROUP BY j.queue, j.task) f
   GROUP BY f.queue, f.task, f.state HAVING sum(f.jobs) <> 0;

-- Figures: how often jobs moved from state to state, and how long that took.

-- Microseconds between two times: not negative, at most 100 days.
CREATE OR REPLACE FUNCTION detent.micros_between(p_from timestamptz, p_to timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT (least(greatest(date_part('epoch', p_to - p_from), 0), 8640000) * 1000000)::bigint
$$;

-- Where the buckets begin, in microseconds.
CREATE OR REPLACE FUNCTION detent.bucket_starts() RETURNS bigint[] LANGUAGE sql IMMUTABLE AS $$
  SELECT '{10,12,15,18,22,27,33,39,47,56,68,82,
    100,120,150,180,220,270,330,390,470,560,680,820,
    1000,1200,1500,1800,2200,2700,3300,3900,4700,5600,6800,8200,
    10000,12000,15000,18000,22000,27000,33000,39000,47000,56000,68000,82000,
    100000,120000,150000,180000,220000,270000,330000,390000,470000,560000,680000,820000,
    1000000,1200000,1500000,1800000,2200000,2700000,3300000,3900000,4700000,5600000,6800000,8200000,
    10000000,12000000,15000000,18000000,22000000,27000000,33000000,39000000,47000000,56000000,68000000,82000000,
    100000000,120000000,150000000,180000000,220000000,270000000,330000000,390000000,470000000,560000000,680000000,820000000,
    1000000000,1200000000,1500000000,1800000000,2200000000,2700000000,3300000000,3900000000,4700000000,5600000000,6800000000,8200000000,
    10000000000,12000000000,15000000000,18000000000,22000000000,27000000000,33000000000,39000000000,47000000000,56000000000,68000000000,82000000000,
    100000000000,120000000000,150000000000,180000000000,220000000000,270000000000,330000000000,390000000000,470000000000,560000000000,680000000000,820000000000,
    1000000000000,1200000000000,1500000000000,1800000000000,2200000000000,2700000000000,3300000000000,3900000000000,4700000000000,5600000000000,6800000000000,8200000000000}'::bigint[]
$$;

-- Twelve buckets for each power of ten: the longest time in one is less than 1.25 times the shortest.
CREATE OR REPLACE FUNCTION detent.duration_bucket(p_us bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_us IS NULL THEN -1 WHEN p_us < 10 THEN p_us ELSE (detent.bucket_starts())[width_bucket(p_us, detent.bucket_starts())] END
$$;

-- Moves of jobs by hour, task, states and outcome, up to now. Several rows may have the same key: add them up. Select by `hour`, or
-- it reads 31 days.
CREATE OR REPLACE VIEW detent.transition_counts AS
  SELECT h.hour, h.task, h.from_state, h.to_state, h.outcome, h.bucket, h.moves, h.held_us, h.held_us_max, h.ran_us, h.ran_us_max,
         h.waited_us, h.waited_us_max
    FROM detent.transition_hour h
  UNION ALL
  SELECT date_bin('1 hour', x.at, 'epoch'), x.task, x.from_state, x.to_state, x.outcome,
         detent.duration_bucket(x.ran_us), 1,
         x.held_us, x.held_us, coalesce(x.ran_us, 0), coalesce(x.ran_us, 0), x.waited_us, x.waited_us
    FROM (SELECT d.at, d.task, d.from_state, d.to_state, d.outcome, d.held_us, d.ran_us, d.waited_us
            FROM detent.transition_delta d
          UNION ALL
          SELECT j.finished_at, j.task, 'running', 'succeeded', 'done',
                 detent.micros_between(j.leased_at, j.finished_at), CASE WHEN j.started_at IS NOT NULL THEN detent.micros_between(j.started_at, j.finished_at) END,
                 detent.micros_between(greatest(j.created_at, j.due_at), j.leased_at)
            FROM detent.succeeded_batch b CROSS JOIN LATERAL unnest(b.job_ids) AS u (job_id)
            JOIN detent.job j ON j.id = u.job_id AND j.state = 'succeeded' AND j.finished_at IS NOT NULL) x;

-- Moves of jobs by minute or hour, state and outcome. Several rows may have the same key: add them up. Select by `at`, or it reads 31
-- days. It adds at most 5,000 moves and 50 batches of succeeded jobs that are not folded yet; the rest follows with the next fold.
CREATE OR REPLACE VIEW detent.transition_rates AS
  SELECT r.at, r.to_state, r.outcome, r.bucket, r.moves, r.us, r.us_max FROM detent.transition_rate r WHERE r.seconds = 60
  UNION ALL
  SELECT r.at, r.to_state, r.outcome, r.bucket, r.moves, r.us, r.us_max FROM detent.transition_rate r WHERE r.seconds = 3600
  UNION ALL
  SELECT date_bin('1 minute', x.at, 'epoch'), m.to_state, m.outcome, detent.duration_bucket(m.us), 1, coalesce(m.us, 0), coalesce(m.us, 0)
    FROM (SELECT d.at, d.to_state, d.outcome, d.ran_us, d.waited_us
            FROM (SELECT * FROM detent.transition_delta ORDER BY n LIMIT 5000) d
          UNION ALL
          SELECT j.finished_at, 'succeeded', 'done',
                 CASE WHEN j.started_at IS NOT NULL THEN detent.micros_between(j.started_at, j.finished_at) END,
                 detent.micros_between(greatest(j.created_at, j.due_at), j.leased_at)
            FROM (SELECT * FROM detent.succeeded_batch ORDER BY n LIMIT 50) b
           CROSS JOIN LATERAL unnest(b.job_ids) AS u (job_id)
            JOIN detent.job j ON j.id = u.job_id AND j.state = 'succeeded' AND j.finished_at IS NOT NULL) x
   CROSS JOIN LATERAL (VALUES (x.to_state, x.outcome, x.ran_us), ('running', '', x.waited_us)) AS m (to_state, outcome, us)
   WHERE m.to_state <> 'running' OR x.outcome <> '';

-- Requests to apply, and batch runs that have ended, one row each. Select by `at`.
CREATE OR REPLACE VIEW detent.batch_counts AS
  SELECT a.created_at AS at, b.batch, 1 AS applies, 0 AS runs, 0 AS applied, 0 AS failed, -1 AS bucket, 0 AS ran_us
    FROM detent.batch_action a JOIN detent.batch_run b ON b.id = a.run_id
   WHERE a.action = 'apply'
  UNION ALL
  SELECT x.at, x.batch, 0, 1, x.applied, x.failed, detent.duration_bucket(x.ran_us), x.ran_us
    FROM (SELECT b.finished_at AS at, b.batch, b.applied + b.rolled_back AS applied, b.failed,
                 detent.micros_between(b.started_at, b.finished_at) AS ran_us
            FROM detent.batch_run b WHERE b.finished_at IS NOT NULL AND b.started_at IS NOT NULL) x;

-- The figures of the last 24 hours, counted from the beginning of an hour. A percentile is the mean of the bucket that it falls into.
CREATE OR REPLACE VIEW detent.attempt_figures AS
  SELECT r.task, r.outcome, sum(r.moves)::bigint AS attempts, sum(r.ran_us) / nullif(sum(r.called), 0) / 1e6 AS mean_seconds,
         min(CASE WHEN r.so_far >= r.of_all * 0.5 THEN r.mean_us END) / 1e6 AS p50_seconds,
         min(CASE WHEN r.so_far >= r.of_all * 0.95 THEN r.mean_us END) / 1e6 AS p95_seconds,
         max(CASE WHEN r.called > 0 THEN r.longest_us END) / 1e6 AS max_seconds
    FROM (SELECT s.*, s.ran_us / nullif(s.called, 0) AS mean_us,
                 sum(s.called) OVER (PARTITION BY s.task, s.outcome ORDER BY s.bucket) AS so_far,
                 sum(s.called) OVER (PARTITION BY s.task, s.outcome) AS of_all
            FROM (SELECT c.task, c.outcome, c.bucket, sum(c.moves) AS moves, sum(CASE WHEN c.bucket >= 0 THEN c.moves ELSE 0 END) AS called,
                         sum(c.ran_us)::double precision AS ran_us, max(c.ran_us_max)::double precision AS longest_us
                    FROM detent.transition_counts c
                   WHERE c.outcome <> '' AND c.hour >= date_bin('1 hour', detent.clock() - interval '24 hours', 'epoch')
                   GROUP BY c.task, c.outcome, c.bucket) s) r
   GROUP BY r.task, r.outcome;

-- Jobs that ended with an attempt, and how many of them succeeded. Retries are attempts that were made again, by themselves or by a
-- person; attempts that were given back (released, snoozed, throttled, parked) are none.
CREATE OR REPLACE VIEW detent.task_figures AS
  SELECT t.task, t.succeeded::bigint AS succeeded, t.failed::bigint AS failed, t.succeeded::double precision / nullif(t.succeeded + t.failed, 0) AS success_rate,
         t.retries::bigint AS retries, t.throttled::bigint AS throttled
    FROM (SELECT c.task, sum(CASE WHEN c.outcome = 'done' THEN c.moves ELSE 0 END) AS succeeded,
                 sum(CASE WHEN c.outcome <> '' AND c.to_state IN ('failed', 'quarantined') THEN c.moves ELSE 0 END) AS failed,
                 sum(CASE WHEN c.to_state = 'pending' AND c.outcome NOT IN ('released', 'snoozed', 'throttled', 'parked') THEN c.moves ELSE 0 END)
                   AS retries,
                 sum(CASE WHEN c.outcome = 'throttled' THEN c.moves ELSE 0 END) AS throttled
            FROM detent.transition_counts c
           WHERE c.hour >= date_bin('1 hour', detent.clock() - interval '24 hours', 'epoch')
           GROUP BY c.task) t;

-- How often jobs moved from state to state, and how long they had been in the state before. An attempt was a move to running too.
CREATE OR REPLACE VIEW detent.transition_figures AS
  SELECT m.task, m.from_state, m.to_state, sum(m.moves)::bigint AS moves, sum(m.held_us)::double precision / sum(m.moves) / 1e6 AS mean_seconds,
         max(m.held_us_max)::double precision / 1e6 AS max_seconds
    FROM (SELECT c.task, c.from_state, c.to_state, c.moves, c.held_us, c.held_us_max FROM detent.transition_counts c
           WHERE c.hour >= date_bin('1 hour', detent.clock() - interval '24 hours', 'epoch')
          UNION ALL
          SELECT c.task, 'pending', 'running', c.moves, c.waited_us, c.waited_us_max FROM detent.transition_counts c
           WHERE c.outcome <> '' AND c.hour >= date_bin('1 hour', detent.clock() - interval '24 hours', 'epoch')) m
   GROUP BY m.task, m.from_state, m.to_state;

-- Ops runs that ended, and how long they took from their claim to the end.
CREATE OR REPLACE VIEW detent.ops_figures AS
  SELECT CASE c.to_state WHEN 'succeeded' THEN 'success' ELSE c.to_state END AS status, sum(c.moves)::bigint AS runs,
         sum(CASE WHEN c.outcome <> '' THEN c.held_us ELSE 0 END)::double precision / nullif(sum(CASE WHEN c.outcome <> '' THEN c.moves ELSE 0 END), 0) / 1e6
           AS mean_seconds,
         max(CASE WHEN c.outcome <> '' THEN c.held_us_max END)::double precision / 1e6 AS max_seconds
    FROM detent.transition_counts c
   WHERE c.task = 'ops.run' AND c.to_state IN ('succeeded', 'failed', 'cancelled')
     AND c.hour >= date_bin('1 hour', detent.clock() - interval '24 hours', 'epoch')
   GROUP BY c.to_state;

-- Batch runs: requests to apply, runs that ended, their targets, and the time from the first target to the end of the run.
CREATE OR REPLACE VIEW detent.batch_figures AS
  SELECT r.batch, sum(r.applies)::bigint AS applies, sum(r.runs)::bigint AS runs, sum(r.applied)::bigint AS applied, sum(r.failed)::bigint AS failed,
         sum(r.applied)::double precision / nullif(sum(r.applied + r.failed), 0) AS success_rate,
         sum(r.ran_us) / nullif(sum(r.runs), 0) / 1e6 AS mean_seconds,
         min(CASE WHEN r.so_far >= r.of_all * 0.5 THEN r.mean_us END) / 1e6 AS p50_seconds,
         min(CASE WHEN r.so_far >= r.of_all * 0.95 THEN r.mean_us END) / 1e6 AS p95_seconds,
         max(CASE WHEN r.runs > 0 THEN r.longest_us END) / 1e6 AS max_seconds, coalesce(max(t.retries), 0) AS retries
    FROM (SELECT s.*, s.ran_us / nullif(s.runs, 0) AS mean_us, sum(s.runs) OVER (PARTITION BY s.batch ORDER BY s.bucket) AS so_far,
                 sum(s.runs) OVER (PARTITION BY s.batch) AS of_all
            FROM (SELECT c.batch, c.bucket, sum(c.applies) AS applies, sum(c.runs) AS runs, sum(c.applied) AS applied,
                         sum(c.failed) AS failed, sum(c.ran_us)::double precision AS ran_us, max(c.ran_us)::double precision AS longest_us
                    FROM detent.batch_counts c
                   WHERE c.at >= date_bin('1 hour', detent.clock() - interval '24 hours', 'epoch')
                   GROUP BY c.batch, c.bucket) s) r
    LEFT JOIN detent.task_figures t ON t.task = r.batch || '.apply'
   GROUP BY r.batch;

-- What waits and runs in each queue, for autoscalers: select one queue. It reads 10,000 jobs of a queue at most, so `ready` ends there.
CREATE OR REPLACE VIEW detent.queue_backlog AS
  SELECT q.queue, b.ready, coalesce(r.running, 0) AS running,
         EXISTS (SELECT 1 FROM detent.queue p WHERE p.name = q.queue AND p.paused_at IS NOT NULL) AS paused
    FROM (SELECT DISTINCT g.queue FROM detent.lane_group g) q
   CROSS JOIN LATERAL (
     SELECT count(*) AS ready
       FROM (SELECT 1 FROM detent.lane l CROSS JOIN LATERAL (SELECT 1 FROM detent.ready e WHERE e.lane_id = l.id LIMIT 10000) e
              WHERE l.queue = q.queue LIMIT 10000) x) b
    LEFT JOIN (SELECT j.queue, count(*) AS running
                 FROM detent.lease l CROSS JOIN LATERAL unnest(l.job_ids) AS held (job_id)
                 JOIN detent.job j ON j.id = held.job_id AND j.lease_id = l.id AND j.state = 'running'
                GROUP BY j.queue) r ON r.queue = q.queue;
