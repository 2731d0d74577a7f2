-- J16, R3: the counts of finished jobs, with the changes since, equal the number of such jobs.
SELECT 'finished_count' AS entity, f.tenant || '/' || f.queue || '/' || f.task || '/' || f.state AS entity_id,
       'it says ' || CAST(sum(f.counted) AS TEXT) || ', and there are ' || CAST(sum(f.there) AS TEXT) AS detail
  FROM (SELECT tenant, queue, task, state, 0 AS counted, count(*) AS there FROM detent.job j
         WHERE finished_at IS NOT NULL AND state <> 'pending' AND state <> 'running' GROUP BY tenant, queue, task, state
        UNION ALL
        SELECT tenant, queue, task, state, jobs, 0 FROM detent.job_counts c
         WHERE state <> 'pending' AND state <> 'running') f
 GROUP BY f.tenant, f.queue, f.task, f.state HAVING sum(f.counted) <> sum(f.there)
 ORDER BY 1, 2;
