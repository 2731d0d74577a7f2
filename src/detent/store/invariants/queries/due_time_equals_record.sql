-- J1, R3: a job that returned to pending has the due time of the record that brought it there.
-- A job that never left pending has the due time that its client set. A retry keeps a later due time: the client's, or that of
-- the last attempt. A parked job that was woken is due between its park and the end of its wait. A workflow that was cancelled
-- while it was pending is due at that time, for its undo.
WITH record AS (
    SELECT job_id, attempt, 50 AS rank, 0 AS n, next_state AS state, coalesce(done_at, aborted_at) AS at, next_due_at AS due_at,
           0 AS retried, CASE WHEN outcome = 'parked' THEN 1 ELSE 0 END AS parked
      FROM detent.execution e
    UNION ALL
    SELECT job_id, attempt, 90, n, to_state, at, CASE WHEN trigger IN ('retry', 'settle', 'rewind') THEN at END,
           CASE WHEN trigger = 'retry' THEN 1 ELSE 0 END, 0
      FROM detent.transition_log l
     WHERE entity = 'job' AND job_id IS NOT NULL AND trigger NOT IN ('request_cancel', 'move', 'fork', 'repair')
  ),
  last AS (
    SELECT job_id, state, at, due_at, retried, parked
      FROM (SELECT record.*, row_number() OVER (PARTITION BY job_id ORDER BY attempt DESC, rank DESC, n DESC) AS place
              FROM record) ranked
     WHERE place = 1
  )
SELECT 'job' AS entity, CAST(j.id AS TEXT) AS entity_id, 'due_at is not the time its last record gave' AS detail
  FROM detent.job j JOIN last ON last.job_id = j.id
  LEFT JOIN detent.execution e ON e.job_id = j.id AND e.attempt = j.attempt
 WHERE j.state = 'pending' AND last.state = 'pending' AND j.due_at IS DISTINCT FROM last.due_at
   AND NOT (last.retried = 1 AND j.due_at > last.at AND (e.job_id IS NULL OR e.next_due_at IS NOT DISTINCT FROM j.due_at))
   AND j.cancel_requested_at IS DISTINCT FROM j.due_at
   AND NOT (last.parked = 1 AND j.due_at >= last.at AND j.due_at <= last.due_at)
 ORDER BY j.id;
