-- J1, R2, R3, INV one state per job: the state on the row is what the record folds to.
-- An attempt without its execution row is in flight: running. Otherwise the last record by (attempt, rank, n) says it.
-- Lines of trigger repair are left out: they say what was rebuilt from the others.
WITH record AS (
    SELECT job_id, attempt, 50 AS rank, 0 AS n, next_state AS state, coalesce(done_at, aborted_at) AS at, next_due_at AS due_at
      FROM detent_execution
    UNION ALL
    SELECT job_id, attempt, 90, n, to_state, at, CASE WHEN trigger IN ('retry', 'settle') THEN at END
      FROM detent_transition_log
     WHERE entity = 'job' AND job_id IS NOT NULL AND trigger NOT IN ('request_cancel', 'move', 'repair')
  ),
  last AS (
    SELECT job_id, state, at, due_at
      FROM (SELECT record.*, row_number() OVER (PARTITION BY job_id ORDER BY attempt DESC, rank DESC, n DESC) AS place
              FROM record) ranked
     WHERE place = 1
  )
SELECT 'job' AS entity, CAST(j.id AS TEXT) AS entity_id,
       'the row says ' || j.state || ', the record says ' || folded.state AS detail
  FROM detent_job j
  JOIN (SELECT k.id,
               CASE WHEN k.attempt > (SELECT coalesce(max(e.attempt), 0) FROM detent_execution e WHERE e.job_id = k.id)
                    THEN 'running' ELSE coalesce(last.state, 'pending') END AS state
          FROM detent_job k LEFT JOIN last ON last.job_id = k.id) folded ON folded.id = j.id
 WHERE j.state <> folded.state
 ORDER BY j.id;
