-- R2, INV timestamps in order: created, leased, started, committed, ended, and so on from attempt to attempt.
-- No time is earlier than the one before it of the same job. Lines of trigger repair may have any time.
WITH newest AS (
    SELECT e.job_id, max(e.attempt) AS attempt FROM detent.execution e GROUP BY e.job_id
  ),
  moment AS (
    SELECT id AS job_id, 0 AS attempt, 0 AS rank, 0 AS n, 'created_at' AS name, created_at AS at,
           'job' AS entity, CAST(id AS TEXT) AS entity_id
      FROM detent.job j
    UNION ALL
    SELECT a.job_id, a.attempt, step.rank, 0, step.name,
           CASE step.rank WHEN 10 THEN a.leased_at WHEN 20 THEN a.started_at WHEN 30 THEN a.committed_at
                          ELSE coalesce(a.done_at, a.aborted_at) END,
           'execution', CAST(a.job_id AS TEXT) || '/' || CAST(a.attempt AS TEXT)
      FROM detent.execution a
     CROSS JOIN (SELECT 10 AS rank, 'leased_at' AS name UNION ALL SELECT 20, 'started_at'
                 UNION ALL SELECT 30, 'committed_at' UNION ALL SELECT 50, 'its end') step
    UNION ALL
    SELECT j.id, j.attempt, step.rank, 0, step.name,
           CASE step.rank WHEN 10 THEN j.leased_at WHEN 20 THEN j.started_at ELSE j.committed_at END, 'job', CAST(j.id AS TEXT)
      FROM detent.job j
      LEFT JOIN newest ON newest.job_id = j.id
     CROSS JOIN (SELECT 10 AS rank, 'leased_at' AS name UNION ALL SELECT 20, 'started_at'
                 UNION ALL SELECT 30, 'committed_at') step
     WHERE j.attempt > coalesce(newest.attempt, 0)
    UNION ALL
    SELECT job_id, attempt, CASE WHEN from_state = 'running' THEN 45 ELSE 90 END, n, 'its time', at, 'transition_log', CAST(n AS TEXT)
      FROM detent.transition_log l
     WHERE entity = 'job' AND job_id IS NOT NULL AND trigger NOT IN ('repair', 'request_cancel')
  ),
  followed AS (
    SELECT moment.*, max(at) OVER (PARTITION BY job_id ORDER BY attempt, rank, n
                                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
      FROM moment WHERE at IS NOT NULL
  )
SELECT entity, entity_id, name || ' is earlier than a time before it' AS detail
  FROM followed
 WHERE at < before
 ORDER BY job_id, attempt, rank, n;
