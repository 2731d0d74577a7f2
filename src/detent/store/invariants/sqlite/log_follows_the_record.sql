-- J1, R2: every record begins in the state to which the one before it led, in the order (attempt, rank, n).
-- Lines of trigger repair are left out: they begin in whatever was found.
WITH record AS (
    SELECT id AS job_id, 0 AS attempt, 0 AS rank, 0 AS n, NULL AS from_state, 'pending' AS to_state,
           'job' AS entity, CAST(id AS TEXT) AS entity_id
      FROM detent_job
    UNION ALL
    SELECT job_id, attempt, 10, 0, 'pending', 'running', 'execution', CAST(job_id AS TEXT) || '/' || CAST(attempt AS TEXT)
      FROM detent_execution
    UNION ALL
    SELECT id, attempt, 10, 0, 'pending', 'running', 'execution', CAST(id AS TEXT) || '/' || CAST(attempt AS TEXT)
      FROM detent_job j
     WHERE attempt > (SELECT coalesce(max(e.attempt), 0) FROM detent_execution e WHERE e.job_id = j.id)
    UNION ALL
    SELECT job_id, attempt, 50, 0, 'running', next_state, 'execution', CAST(job_id AS TEXT) || '/' || CAST(attempt AS TEXT)
      FROM detent_execution
    UNION ALL
    SELECT job_id, attempt, CASE WHEN from_state = 'running' THEN 45 ELSE 90 END, n, from_state, to_state,
           'transition_log', CAST(n AS TEXT)
      FROM detent_transition_log
     WHERE entity = 'job' AND job_id IS NOT NULL AND trigger <> 'repair'
  ),
  chained AS (
    SELECT record.*, lag(to_state) OVER (PARTITION BY job_id ORDER BY attempt, rank, n) AS before FROM record
  )
SELECT entity, entity_id, 'it begins in ' || coalesce(from_state, 'nothing') || ', the record before it led to ' || before AS detail
  FROM chained
 WHERE before IS NOT NULL AND from_state IS NOT before
   AND EXISTS (SELECT 1 FROM detent_job j WHERE j.id = chained.job_id)
 ORDER BY job_id, attempt, rank, n;
