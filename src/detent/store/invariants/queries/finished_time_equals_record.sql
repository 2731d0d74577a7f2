-- J1, R3: a finished job has the time of the record that finished it. Retention decides by this time.
WITH record AS (
    SELECT job_id, attempt, 50 AS rank, 0 AS n, next_state AS state, coalesce(done_at, aborted_at) AS at, next_due_at AS due_at
      FROM detent.execution e
    UNION ALL
    SELECT job_id, attempt, 90, n, to_state, at, CASE WHEN trigger IN ('retry', 'settle', 'rewind') THEN at END
      FROM detent.transition_log l
     WHERE entity = 'job' AND job_id IS NOT NULL AND trigger NOT IN ('request_cancel', 'move', 'fork', 'repair')
  ),
  last AS (
    SELECT job_id, state, at, due_at
      FROM (SELECT record.*, row_number() OVER (PARTITION BY job_id ORDER BY attempt DESC, rank DESC, n DESC) AS place
              FROM record) ranked
     WHERE place = 1
  )
SELECT 'job' AS entity, CAST(j.id AS TEXT) AS entity_id,
       CASE WHEN j.finished_at IS NULL THEN 'it rests without finished_at'
            WHEN j.state IN ('pending', 'running') THEN 'it is ' || j.state || ' and has finished_at'
            ELSE 'finished_at is not the time of its last record' END AS detail
  FROM detent.job j LEFT JOIN last ON last.job_id = j.id
 WHERE (j.state IN ('pending', 'running') AND j.finished_at IS NOT NULL)
    OR (j.state NOT IN ('pending', 'running') AND j.finished_at IS NULL)
    OR (j.state NOT IN ('pending', 'running') AND last.at IS NOT NULL AND j.finished_at <> last.at)
 ORDER BY j.id;
