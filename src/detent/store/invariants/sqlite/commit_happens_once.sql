-- C1, R2, INV_001: at most one execution of a job ever commits, ended or in flight.
SELECT 'job' AS entity, CAST(job_id AS TEXT) AS entity_id, count(*) || ' executions are committed' AS detail
  FROM (SELECT job_id FROM detent_execution WHERE committed_at IS NOT NULL
        UNION ALL
        SELECT j.id FROM detent_job j
         WHERE j.committed_at IS NOT NULL
           AND j.attempt > (SELECT coalesce(max(e.attempt), 0) FROM detent_execution e WHERE e.job_id = j.id)) committed
 GROUP BY job_id
HAVING count(*) > 1
 ORDER BY job_id;
