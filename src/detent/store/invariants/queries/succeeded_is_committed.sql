-- C1, R2: a job has succeeded exactly when an execution of it is committed and done, an operator forced or settled it,
-- or it is a graph whose nodes have all succeeded.
WITH said AS (
    SELECT DISTINCT l.job_id
      FROM detent.transition_log l
     WHERE l.entity = 'job' AND l.job_id IS NOT NULL AND l.to_state = 'succeeded' AND (l.forced OR l.trigger IN ('settle', 'complete'))
  ),
  found AS (
    SELECT j.id,
           CASE WHEN j.state = 'succeeded' AND j.committed_at IS NULL THEN 'succeeded without committed_at'
                WHEN j.state = 'succeeded' AND e.job_id IS NULL AND said.job_id IS NULL
                  THEN 'succeeded without a committed execution, and neither forced nor settled'
                WHEN j.state <> 'succeeded' AND e.job_id IS NOT NULL
                  THEN 'it is ' || j.state || ' after attempt ' || e.attempt || ' committed'
                WHEN j.state NOT IN ('running', 'succeeded') AND j.committed_at IS NOT NULL
                  THEN 'it is ' || j.state || ' and has committed_at'
                WHEN e.job_id IS NOT NULL AND j.committed_at <> e.committed_at
                  THEN 'committed_at is not that of attempt ' || e.attempt
           END AS detail
      FROM detent.job j
      LEFT JOIN detent.execution e ON e.job_id = j.id AND e.committed_at IS NOT NULL
      LEFT JOIN said ON said.job_id = j.id
  )
SELECT 'job' AS entity, CAST(id AS TEXT) AS entity_id, detail
  FROM found
 WHERE detail IS NOT NULL
 ORDER BY found.id;
