-- M1, R3: the totals of finished jobs by queue, task and state are the sums of the counts by tenant.
SELECT 'finished_total' AS entity, f.queue || '/' || f.task || '/' || f.state AS entity_id,
       'it says ' || CAST(sum(f.total) AS TEXT) || ', and the counts of all tenants say ' || CAST(sum(f.counted) AS TEXT) AS detail
  FROM (SELECT queue, task, state, jobs AS total, 0 AS counted FROM detent.finished_total t
        UNION ALL
        SELECT queue, task, state, 0, jobs FROM detent.finished_count c) f
 GROUP BY f.queue, f.task, f.state HAVING sum(f.total) <> sum(f.counted)
 ORDER BY 1, 2;
