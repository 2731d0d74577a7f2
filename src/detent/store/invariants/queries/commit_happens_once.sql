-- C1, R2, INV_001: at most one execution of a job ever commits, ended or in flight.
WITH newest AS (
    SELECT e.job_id, max(e.attempt) AS attempt FROM detent.execution e GROUP BY e.job_id
  ),
  committed AS (
    SELECT e.job_id FROM detent.execution e WHERE e.committed_at IS NOT NULL
    UNION ALL
    SELECT j.id FROM detent.job j LEFT JOIN newest ON newest.job_id = j.id
     WHERE j.committed_at IS NOT NULL AND j.attempt > coalesce(newest.attempt, 0)
  )
SELECT 'job' AS entity, CAST(job_id AS TEXT) AS entity_id, count(*) || ' executions are committed' AS detail
  FROM committed
 GROUP BY job_id
HAVING count(*) > 1
 ORDER BY job_id;
