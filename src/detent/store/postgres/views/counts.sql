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
