-- R2, INV succeeded jobs are immutable: there is no record after the attempt that committed, or after a forced success.
WITH success AS (
    SELECT job_id, attempt, 50 AS rank, 0 AS n FROM detent.execution e WHERE next_state = 'succeeded'
    UNION ALL
    SELECT job_id, attempt, 90, n FROM detent.transition_log l
     WHERE entity = 'job' AND job_id IS NOT NULL AND to_state = 'succeeded' AND trigger <> 'repair'
  ),
  first AS (
    SELECT job_id, attempt, rank, n
      FROM (SELECT success.*, row_number() OVER (PARTITION BY job_id ORDER BY attempt, rank, n) AS place FROM success) ranked
     WHERE place = 1
  )
SELECT 'execution' AS entity, CAST(e.job_id AS TEXT) || '/' || CAST(e.attempt AS TEXT) AS entity_id,
       'the job succeeded with attempt ' || f.attempt AS detail
  FROM detent.execution e JOIN first f ON f.job_id = e.job_id
 WHERE e.attempt > f.attempt
UNION ALL
SELECT 'transition_log', CAST(l.n AS TEXT), 'job ' || l.job_id || ' succeeded with attempt ' || f.attempt
  FROM detent.transition_log l JOIN first f ON f.job_id = l.job_id
 WHERE l.entity = 'job' AND l.trigger <> 'repair' AND l.from_state <> 'running'
   AND (l.attempt > f.attempt OR (l.attempt = f.attempt AND (90 > f.rank OR l.n > f.n)))
UNION ALL
SELECT 'job', CAST(j.id AS TEXT), 'attempt ' || j.attempt || ' was claimed after it succeeded with attempt ' || f.attempt
  FROM detent.job j JOIN first f ON f.job_id = j.id
 WHERE j.attempt > f.attempt
 ORDER BY 1, 2;
