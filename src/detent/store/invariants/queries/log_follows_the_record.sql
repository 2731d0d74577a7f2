-- J1, R2: every record starts from the state that the one before it led to, in the order (attempt, rank, n).
-- Lines of trigger repair are left out: they start from the state that was found. If rank 0 is missing, so is the job.
WITH newest AS (
    SELECT e.job_id, max(e.attempt) AS attempt FROM detent.execution e GROUP BY e.job_id
  ),
  record AS (
    SELECT j.id AS job_id, 0 AS attempt, 0 AS rank, 0 AS n, NULL AS from_state, 'pending' AS to_state
      FROM detent.job j
    UNION ALL
    SELECT e.job_id, e.attempt, 10, 0, 'pending', 'running'
      FROM detent.execution e
    UNION ALL
    SELECT j.id, j.attempt, 10, 0, 'pending', 'running'
      FROM detent.job j LEFT JOIN newest ON newest.job_id = j.id
     WHERE j.attempt > coalesce(newest.attempt, 0)
    UNION ALL
    SELECT e.job_id, e.attempt, 50, 0, 'running', e.next_state
      FROM detent.execution e
    UNION ALL
    SELECT l.job_id, l.attempt, CASE WHEN l.from_state = 'running' THEN 45 ELSE 90 END, l.n, l.from_state, l.to_state
      FROM detent.transition_log l
     WHERE l.entity = 'job' AND l.job_id IS NOT NULL AND l.trigger <> 'repair'
  ),
  chained AS (
    SELECT record.*, lag(to_state) OVER (PARTITION BY job_id ORDER BY attempt, rank, n) AS before,
           min(rank) OVER (PARTITION BY job_id) AS first_rank
      FROM record
  )
SELECT CASE WHEN n > 0 THEN 'transition_log' WHEN rank > 0 THEN 'execution' ELSE 'job' END AS entity,
       CASE WHEN n > 0 THEN CAST(n AS TEXT) WHEN rank > 0 THEN CAST(job_id AS TEXT) || '/' || CAST(attempt AS TEXT)
            ELSE CAST(job_id AS TEXT) END AS entity_id,
       'it begins in ' || coalesce(from_state, 'nothing') || ', the record before it led to ' || before AS detail
  FROM chained
 WHERE before IS NOT NULL AND from_state IS DISTINCT FROM before AND first_rank = 0
 ORDER BY job_id, attempt, rank, n;
