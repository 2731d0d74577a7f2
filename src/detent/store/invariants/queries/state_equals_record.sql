-- J1, R2, R3, INV one state per job: the state on the row follows from the records.
-- An attempt without its execution row is in flight: running. Otherwise the last record by (attempt, rank, n) decides.
-- Lines of trigger repair are left out: they repeat what the others led to.
WITH record AS (
    SELECT e.job_id, e.attempt, 50 AS rank, 0 AS n, e.next_state AS state
      FROM detent.execution e
    UNION ALL
    SELECT l.job_id, l.attempt, 90, l.n, l.to_state
      FROM detent.transition_log l
     WHERE l.entity = 'job' AND l.job_id IS NOT NULL AND l.trigger NOT IN ('request_cancel', 'move', 'fork', 'repair')
  ),
  last AS (
    SELECT job_id, state
      FROM (SELECT record.*, row_number() OVER (PARTITION BY job_id ORDER BY attempt DESC, rank DESC, n DESC) AS place
              FROM record) ranked
     WHERE place = 1
  ),
  newest AS (
    SELECT e.job_id, max(e.attempt) AS attempt FROM detent.execution e GROUP BY e.job_id
  ),
  folded AS (
    SELECT j.id, j.state AS shown,
           CASE WHEN j.attempt > coalesce(newest.attempt, 0) THEN 'running' ELSE coalesce(last.state, 'pending') END AS state
      FROM detent.job j
      LEFT JOIN newest ON newest.job_id = j.id
      LEFT JOIN last ON last.job_id = j.id
  )
SELECT 'job' AS entity, CAST(id AS TEXT) AS entity_id, 'the row says ' || shown || ', the record says ' || state AS detail
  FROM folded
 WHERE shown <> state
 ORDER BY id;
