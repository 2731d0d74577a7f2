-- Counts of finished jobs without a walk through all jobs.
--
-- finished_count   jobs at rest by tenant, queue, task and state, as of the last fold
-- finished_delta   moves to and from rest since then, but those to succeeded of a running job
-- succeeded_batch  the jobs that have succeeded since then, one row for all that ended together
--
-- The transaction that moves a job writes the change, so the sum of the three is exact. Rows are only inserted, so no
-- transaction waits for another.

CREATE TABLE detent_finished_count (
  tenant TEXT    NOT NULL,
  queue  TEXT    NOT NULL,
  task   TEXT    NOT NULL,
  state  TEXT    NOT NULL,
  jobs   INTEGER NOT NULL,
  CONSTRAINT finished_count_pkey PRIMARY KEY (tenant, queue, task, state)
) STRICT, WITHOUT ROWID;

CREATE TABLE detent_finished_delta (
  n      INTEGER NOT NULL,
  tenant TEXT    NOT NULL,
  queue  TEXT    NOT NULL,
  task   TEXT    NOT NULL,
  state  TEXT    NOT NULL,
  jobs   INTEGER NOT NULL,
  CONSTRAINT finished_delta_pkey PRIMARY KEY (n)
) STRICT;

CREATE TABLE detent_succeeded_batch (
  n       INTEGER NOT NULL,
  job_ids TEXT    NOT NULL,
  CONSTRAINT succeeded_batch_pkey PRIMARY KEY (n)
) STRICT;

CREATE TRIGGER detent_job_counted AFTER UPDATE OF finished_at ON detent_job
  WHEN (NEW.finished_at IS NOT NULL OR OLD.finished_at IS NOT NULL) AND NEW.state <> OLD.state
    AND NOT (NEW.state = 'succeeded' AND OLD.state = 'running')
BEGIN
  INSERT INTO detent_finished_delta (tenant, queue, task, state, jobs)
    SELECT OLD.tenant, OLD.queue, OLD.task, OLD.state, -1 WHERE OLD.finished_at IS NOT NULL
    UNION ALL
    SELECT NEW.tenant, NEW.queue, NEW.task, NEW.state, 1 WHERE NEW.finished_at IS NOT NULL;
END;

INSERT INTO detent_finished_count (tenant, queue, task, state, jobs)
  SELECT tenant, queue, task, state, count(*) FROM detent_job WHERE finished_at IS NOT NULL GROUP BY tenant, queue, task, state;


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
