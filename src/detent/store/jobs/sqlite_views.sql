-- Counts of jobs.

-- Jobs by tenant, queue, task and state, now. Exact: pending jobs from their places in the queue, running ones from the leases,
-- jobs at rest from the counts above.
CREATE VIEW detent_job_counts AS
  SELECT l.tenant, l.queue, l.task, 'pending' AS state, sum(q.jobs) AS jobs
    FROM (SELECT r.lane_id, count(*) AS jobs FROM detent_ready r GROUP BY r.lane_id
          UNION ALL
          SELECT w.lane_id, count(*) FROM detent_waiting w GROUP BY w.lane_id) q
    CROSS JOIN detent_lane l ON l.id = q.lane_id
   GROUP BY l.tenant, l.queue, l.task
  UNION ALL
  SELECT j.tenant, j.queue, j.task, 'running', count(*)
    FROM detent_lease l CROSS JOIN json_each(l.job_ids) held
    CROSS JOIN detent_job j ON j.id = held.value AND j.lease_id = l.id AND j.state = 'running'
   GROUP BY j.tenant, j.queue, j.task
  UNION ALL
  SELECT f.tenant, f.queue, f.task, f.state, sum(f.jobs)
    FROM (SELECT tenant, queue, task, state, jobs FROM detent_finished_count
          UNION ALL
          SELECT tenant, queue, task, state, jobs FROM detent_finished_delta
          UNION ALL
          SELECT j.tenant, j.queue, j.task, j.state, count(*)
            FROM detent_succeeded_batch b CROSS JOIN json_each(b.job_ids) u
            CROSS JOIN detent_job j ON j.id = u.value AND j.state = 'succeeded'
           GROUP BY j.tenant, j.queue, j.task, j.state) f
   GROUP BY f.tenant, f.queue, f.task, f.state HAVING sum(f.jobs) <> 0;

-- The same for all tenants together: pending jobs by the group of their lane, jobs at rest from the totals. They are counted by lane
-- first, which is the order in which they stand: by group at once, SQLite would sort them.
CREATE VIEW detent_queue_counts AS
  SELECT g.queue, g.task, 'pending' AS state, sum(q.jobs) AS jobs
    FROM (SELECT r.lane_id, count(*) AS jobs FROM detent_ready r GROUP BY r.lane_id
          UNION ALL
          SELECT w.lane_id, count(*) FROM detent_waiting w GROUP BY w.lane_id) q
    CROSS JOIN detent_lane_group g ON g.id = q.lane_id >> 32
   GROUP BY g.queue, g.task
  UNION ALL
  SELECT j.queue, j.task, 'running', count(*)
    FROM detent_lease l CROSS JOIN json_each(l.job_ids) held
    CROSS JOIN detent_job j ON j.id = held.value AND j.lease_id = l.id AND j.state = 'running'
   GROUP BY j.queue, j.task
  UNION ALL
  SELECT f.queue, f.task, f.state, sum(f.jobs)
    FROM (SELECT queue, task, state, jobs FROM detent_finished_total
          UNION ALL
          SELECT queue, task, state, jobs FROM detent_finished_delta
          UNION ALL
          SELECT j.queue, j.task, j.state, count(*)
            FROM detent_succeeded_batch b CROSS JOIN json_each(b.job_ids) u
            CROSS JOIN detent_job j ON j.id = u.value AND j.state = 'succeeded'
           GROUP BY j.queue, j.task, j.state) f
   GROUP BY f.queue, f.task, f.state HAVING sum(f.jobs) <> 0;

-- Figures: how often jobs moved from state to state, and how long that took.

-- Moves of jobs by hour, task, states and outcome, up to now. Several rows may have the same key: add them up. Select by `hour`, or
-- it reads 31 days.
CREATE VIEW detent_transition_counts AS
  SELECT h.hour, h.task, h.from_state, h.to_state, h.outcome, h.bucket, h.moves, h.held_us, h.held_us_max, h.ran_us, h.ran_us_max,
         h.waited_us, h.waited_us_max
    FROM detent_transition_hour h
  UNION ALL
  SELECT x.at - x.at % 3600000000, x.task, x.from_state, x.to_state, x.outcome,
         CASE WHEN x.ran_us IS NULL THEN -1 WHEN x.ran_us < 10 THEN x.ran_us ELSE CAST(substr('101012121215151518181818222222222227272727272733333333333339393939393939394747474747474747475656565656565656565656566868686868686868686868686868828282828282828282828282828282828282',
           2 * CAST(substr(x.ran_us, 1, 2) AS INTEGER) - 19, 2) || substr('0000000000000000', 1, length(x.ran_us) - 2) AS INTEGER) END, 1,
         x.held_us, x.held_us, coalesce(x.ran_us, 0), coalesce(x.ran_us, 0), x.waited_us, x.waited_us
    FROM (SELECT d.at, d.task, d.from_state, d.to_state, d.outcome, d.held_us, d.ran_us, d.waited_us
            FROM detent_transition_delta d
          UNION ALL
          SELECT j.finished_at, j.task, 'running', 'succeeded', 'done',
                 coalesce(min(max(j.finished_at - j.leased_at, 0), 8640000000000), 0), min(max(j.finished_at - j.started_at, 0), 8640000000000),
                 coalesce(min(max(j.leased_at - max(j.created_at, j.due_at), 0), 8640000000000), 0)
            FROM detent_succeeded_batch b CROSS JOIN json_each(b.job_ids) u
            CROSS JOIN detent_job j ON j.id = u.value AND j.state = 'succeeded' AND j.finished_at IS NOT NULL) x;

-- Moves of jobs by minute or hour, state and outcome. Several rows may have the same key: add them up. Select by `at`, or it reads 31
-- days. It adds at most 5,000 moves and 50 batches of succeeded jobs that are not folded yet; the rest follows with the next fold.
CREATE VIEW detent_transition_rates AS
  SELECT r.at, r.to_state, r.outcome, r.bucket, r.moves, r.us, r.us_max FROM detent_transition_rate r WHERE r.seconds = 60
  UNION ALL
  SELECT r.at, r.to_state, r.outcome, r.bucket, r.moves, r.us, r.us_max FROM detent_transition_rate r WHERE r.seconds = 3600
  UNION ALL
  SELECT y.at - y.at % 60000000, y.to_state, y.outcome,
         CASE WHEN y.us IS NULL THEN -1 WHEN y.us < 10 THEN y.us ELSE CAST(substr('101012121215151518181818222222222227272727272733333333333339393939393939394747474747474747475656565656565656565656566868686868686868686868686868828282828282828282828282828282828282',
           2 * CAST(substr(y.us, 1, 2) AS INTEGER) - 19, 2) || substr('0000000000000000', 1, length(y.us) - 2) AS INTEGER) END, 1, coalesce(y.us, 0), coalesce(y.us, 0)
    FROM (SELECT x.at, iif(m.column1, x.to_state, 'running') AS to_state, iif(m.column1, x.outcome, '') AS outcome,
                 iif(m.column1, x.ran_us, x.waited_us) AS us
            FROM (SELECT d.at, d.to_state, d.outcome, d.ran_us, d.waited_us
                    FROM (SELECT * FROM detent_transition_delta ORDER BY n LIMIT 5000) d
                  UNION ALL
                  SELECT j.finished_at, 'succeeded', 'done', min(max(j.finished_at - j.started_at, 0), 8640000000000),
                         coalesce(min(max(j.leased_at - max(j.created_at, j.due_at), 0), 8640000000000), 0)
                    FROM (SELECT * FROM detent_succeeded_batch ORDER BY n LIMIT 50) b CROSS JOIN json_each(b.job_ids) u
                   CROSS JOIN detent_job j ON j.id = u.value AND j.state = 'succeeded' AND j.finished_at IS NOT NULL) x
           CROSS JOIN (VALUES (1), (0)) m
           WHERE m.column1 OR x.outcome <> '') y;

-- Requests to apply, and batch runs that have ended, one row each. Select by `at`.
CREATE VIEW detent_batch_counts AS
  SELECT a.created_at AS at, b.batch, 1 AS applies, 0 AS runs, 0 AS applied, 0 AS failed, -1 AS bucket, 0 AS ran_us
    FROM detent_batch_action a JOIN detent_batch_run b ON b.id = a.run_id
   WHERE a.action = 'apply'
  UNION ALL
  SELECT x.at, x.batch, 0, 1, x.applied, x.failed, CASE WHEN x.ran_us IS NULL THEN -1 WHEN x.ran_us < 10 THEN x.ran_us ELSE CAST(substr('101012121215151518181818222222222227272727272733333333333339393939393939394747474747474747475656565656565656565656566868686868686868686868686868828282828282828282828282828282828282',
           2 * CAST(substr(x.ran_us, 1, 2) AS INTEGER) - 19, 2) || substr('0000000000000000', 1, length(x.ran_us) - 2) AS INTEGER) END, x.ran_us
    FROM (SELECT b.finished_at AS at, b.batch, b.applied + b.rolled_back AS applied, b.failed,
                 coalesce(min(max(b.finished_at - b.started_at, 0), 8640000000000), 0) AS ran_us
            FROM detent_batch_run b WHERE b.finished_at IS NOT NULL AND b.started_at IS NOT NULL) x;

-- The figures of the last 24 hours, counted from the beginning of an hour. A percentile is the mean of the bucket that it falls into.
-- differs: by the clock of the machine, since SQLite has none of its own.
CREATE VIEW detent_attempt_figures AS
  SELECT r.task, r.outcome, sum(r.moves) AS attempts, sum(r.ran_us) / nullif(sum(r.called), 0) / 1e6 AS mean_seconds,
         min(CASE WHEN r.so_far >= r.of_all * 0.5 THEN r.mean_us END) / 1e6 AS p50_seconds,
         min(CASE WHEN r.so_far >= r.of_all * 0.95 THEN r.mean_us END) / 1e6 AS p95_seconds,
         max(CASE WHEN r.called > 0 THEN r.longest_us END) / 1e6 AS max_seconds
    FROM (SELECT s.*, s.ran_us / nullif(s.called, 0) AS mean_us,
                 sum(s.called) OVER (PARTITION BY s.task, s.outcome ORDER BY s.bucket) AS so_far,
                 sum(s.called) OVER (PARTITION BY s.task, s.outcome) AS of_all
            FROM (SELECT c.task, c.outcome, c.bucket, sum(c.moves) AS moves, sum(CASE WHEN c.bucket >= 0 THEN c.moves ELSE 0 END) AS called,
                         sum(c.ran_us) * 1.0 AS ran_us, max(c.ran_us_max) * 1.0 AS longest_us
                    FROM detent_transition_counts c
                   WHERE c.outcome <> '' AND c.hour >= (CAST(strftime('%s', 'now') AS INTEGER) / 3600 - 24) * 3600000000
                   GROUP BY c.task, c.outcome, c.bucket) s) r
   GROUP BY r.task, r.outcome;

-- Jobs that ended with an attempt, and how many of them succeeded. Retries are attempts that were made again, by themselves or by a
-- person; attempts that were given back (released, snoozed, throttled, parked) are none.
CREATE VIEW detent_task_figures AS
  SELECT t.task, t.succeeded AS succeeded, t.failed AS failed, t.succeeded * 1.0 / nullif(t.succeeded + t.failed, 0) AS success_rate,
         t.retries AS retries, t.throttled AS throttled
    FROM (SELECT c.task, sum(CASE WHEN c.outcome = 'done' THEN c.moves ELSE 0 END) AS succeeded,
                 sum(CASE WHEN c.outcome <> '' AND c.to_state IN ('failed', 'quarantined') THEN c.moves ELSE 0 END) AS failed,
                 sum(CASE WHEN c.to_state = 'pending' AND c.outcome NOT IN ('released', 'snoozed', 'throttled', 'parked') THEN c.moves ELSE 0 END)
                   AS retries,
                 sum(CASE WHEN c.outcome = 'throttled' THEN c.moves ELSE 0 END) AS throttled
            FROM detent_transition_counts c
           WHERE c.hour >= (CAST(strftime('%s', 'now') AS INTEGER) / 3600 - 24) * 3600000000
           GROUP BY c.task) t;

-- How often jobs moved from state to state, and how long they had been in the state before. An attempt was a move to running too.
CREATE VIEW detent_transition_figures AS
  SELECT m.task, m.from_state, m.to_state, sum(m.moves) AS moves, sum(m.held_us) * 1.0 / sum(m.moves) / 1e6 AS mean_seconds,
         max(m.held_us_max) * 1.0 / 1e6 AS max_seconds
    FROM (SELECT c.task, c.from_state, c.to_state, c.moves, c.held_us, c.held_us_max FROM detent_transition_counts c
           WHERE c.hour >= (CAST(strftime('%s', 'now') AS INTEGER) / 3600 - 24) * 3600000000
          UNION ALL
          SELECT c.task, 'pending', 'running', c.moves, c.waited_us, c.waited_us_max FROM detent_transition_counts c
           WHERE c.outcome <> '' AND c.hour >= (CAST(strftime('%s', 'now') AS INTEGER) / 3600 - 24) * 3600000000) m
   GROUP BY m.task, m.from_state, m.to_state;

-- Ops runs that ended, and how long they took from their claim to the end.
CREATE VIEW detent_ops_figures AS
  SELECT CASE c.to_state WHEN 'succeeded' THEN 'success' ELSE c.to_state END AS status, sum(c.moves) AS runs,
         sum(CASE WHEN c.outcome <> '' THEN c.held_us ELSE 0 END) * 1.0 / nullif(sum(CASE WHEN c.outcome <> '' THEN c.moves ELSE 0 END), 0) / 1e6
           AS mean_seconds,
         max(CASE WHEN c.outcome <> '' THEN c.held_us_max END) * 1.0 / 1e6 AS max_seconds
    FROM detent_transition_counts c
   WHERE c.task = 'ops.run' AND c.to_state IN ('succeeded', 'failed', 'cancelled')
     AND c.hour >= (CAST(strftime('%s', 'now') AS INTEGER) / 3600 - 24) * 3600000000
   GROUP BY c.to_state;

-- Batch runs: requests to apply, runs that ended, their targets, and the time from the first target to the end of the run.
CREATE VIEW detent_batch_figures AS
  SELECT r.batch, sum(r.applies) AS applies, sum(r.runs) AS runs, sum(r.applied) AS applied, sum(r.failed) AS failed,
         sum(r.applied) * 1.0 / nullif(sum(r.applied + r.failed), 0) AS success_rate,
         sum(r.ran_us) / nullif(sum(r.runs), 0) / 1e6 AS mean_seconds,
         min(CASE WHEN r.so_far >= r.of_all * 0.5 THEN r.mean_us END) / 1e6 AS p50_seconds,
         min(CASE WHEN r.so_far >= r.of_all * 0.95 THEN r.mean_us END) / 1e6 AS p95_seconds,
         max(CASE WHEN r.runs > 0 THEN r.longest_us END) / 1e6 AS max_seconds, coalesce(max(t.retries), 0) AS retries
    FROM (SELECT s.*, s.ran_us / nullif(s.runs, 0) AS mean_us, sum(s.runs) OVER (PARTITION BY s.batch ORDER BY s.bucket) AS so_far,
                 sum(s.runs) OVER (PARTITION BY s.batch) AS of_all
            FROM (SELECT c.batch, c.bucket, sum(c.applies) AS applies, sum(c.runs) AS runs, sum(c.applied) AS applied,
                         sum(c.failed) AS failed, sum(c.ran_us) * 1.0 AS ran_us, max(c.ran_us) * 1.0 AS longest_us
                    FROM detent_batch_counts c
                   WHERE c.at >= (CAST(strftime('%s', 'now') AS INTEGER) / 3600 - 24) * 3600000000
                   GROUP BY c.batch, c.bucket) s) r
    LEFT JOIN detent_task_figures t ON t.task = r.batch || '.apply'
   GROUP BY r.batch;
