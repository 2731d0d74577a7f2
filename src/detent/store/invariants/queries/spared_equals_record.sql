-- J1, J7, R3: spared is the attempt of the newest retry plus the attempts since then that did not count.
WITH retried AS (
    SELECT l.job_id, max(l.attempt) AS attempt
      FROM detent.transition_log l
     WHERE l.entity = 'job' AND l.to_state = 'pending' AND l.trigger IN ('retry', 'settle') AND l.job_id IS NOT NULL
     GROUP BY l.job_id
  ),
  given AS (
    SELECT j.id, j.spared AS shown, coalesce(r.attempt, 0) + count(e.attempt) AS spared
      FROM detent.job j
      LEFT JOIN retried r ON r.job_id = j.id
      LEFT JOIN detent.execution e ON e.job_id = j.id AND NOT e.counted AND e.attempt > coalesce(r.attempt, 0)
     GROUP BY j.id, j.spared, r.attempt
  )
SELECT 'job' AS entity, CAST(id AS TEXT) AS entity_id, 'spared is ' || shown || ', the record gives ' || spared AS detail
  FROM given
 WHERE shown <> spared
 ORDER BY id;
