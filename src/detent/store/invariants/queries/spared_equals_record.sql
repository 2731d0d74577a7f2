-- J1, J7, R3: spared is the attempt of the newest retry plus the attempts since then that did not count. An attempt that has
-- recorded a step of a workflow, other than a time, spares all attempts before it.
WITH retried AS (
    SELECT l.job_id, max(l.attempt) AS attempt
      FROM detent.transition_log l
     WHERE l.entity = 'job' AND l.to_state = 'pending' AND l.from_state <> 'pending' AND l.trigger IN ('retry', 'settle', 'rewind')
       AND l.job_id IS NOT NULL
     GROUP BY l.job_id
  ),
  progressed AS (
    SELECT s.job_id, max(s.attempt) - 1 AS attempt
      FROM detent.workflow_step s
      JOIN detent.execution e ON e.job_id = s.job_id AND e.attempt = s.attempt AND e.outcome <> 'done'
     WHERE s.kind NOT IN ('sleep', 'deadline', 'timeout', 'token')
     GROUP BY s.job_id
  ),
  counted AS (
    SELECT j.id, j.spared, greatest(coalesce(r.attempt, 0), coalesce(p.attempt, 0)) AS since
      FROM detent.job j
      LEFT JOIN retried r ON r.job_id = j.id
      LEFT JOIN progressed p ON p.job_id = j.id
  ),
  given AS (
    SELECT c.id, c.spared AS shown, c.since + count(e.attempt) AS spared
      FROM counted c
      LEFT JOIN detent.execution e ON e.job_id = c.id AND NOT e.counted AND e.attempt > c.since
     GROUP BY c.id, c.spared, c.since
  )
SELECT 'job' AS entity, CAST(id AS TEXT) AS entity_id, 'spared is ' || shown || ', the record gives ' || spared AS detail
  FROM given
 WHERE shown <> spared
 ORDER BY id;
