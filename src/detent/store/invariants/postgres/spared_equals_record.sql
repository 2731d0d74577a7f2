-- J1, J7, R3: spared is the attempt of the newest retry, and every attempt since that did not count.
WITH retried AS (
    SELECT job_id, max(attempt) AS attempt
      FROM detent.transition_log
     WHERE entity = 'job' AND to_state = 'pending' AND trigger IN ('retry', 'settle') AND job_id IS NOT NULL
     GROUP BY job_id
  ),
  given AS (
    SELECT j.id, coalesce(r.attempt, 0) + (
             SELECT count(*) FROM detent.execution e
              WHERE e.job_id = j.id AND e.attempt > coalesce(r.attempt, 0) AND NOT e.counted) AS spared
      FROM detent.job j LEFT JOIN retried r ON r.job_id = j.id
  )
SELECT 'job' AS entity, CAST(j.id AS TEXT) AS entity_id, 'spared is ' || j.spared || ', the record gives ' || given.spared AS detail
  FROM detent.job j JOIN given ON given.id = j.id
 WHERE j.spared <> given.spared
 ORDER BY j.id;
