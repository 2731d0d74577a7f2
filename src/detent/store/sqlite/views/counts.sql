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
