-- J8: an attempt leads to cancelled only if a cancel was requested after the job was last retried. An ops run that was
-- claimed and never began is cancelled without a request.
WITH cancelled AS (
    SELECT job_id, attempt, outcome FROM detent.execution e
     WHERE next_state = 'cancelled' AND NOT (outcome = 'expired' AND started_at IS NULL)
  ),
  told AS (
    SELECT c.job_id, c.attempt,
           max(CASE WHEN l.trigger = 'request_cancel' AND l.attempt <= c.attempt THEN l.n END) AS requested,
           max(CASE WHEN l.to_state = 'pending' AND l.from_state <> 'pending' AND l.attempt < c.attempt THEN l.n ELSE -1 END)
             AS brought_back
      FROM cancelled c JOIN detent.transition_log l ON l.job_id = c.job_id
     GROUP BY c.job_id, c.attempt
  )
SELECT 'execution' AS entity, CAST(c.job_id AS TEXT) || '/' || CAST(c.attempt AS TEXT) AS entity_id,
       'outcome ' || c.outcome || ' led to cancelled, and no cancel was requested' AS detail
  FROM cancelled c LEFT JOIN told ON told.job_id = c.job_id AND told.attempt = c.attempt
 WHERE told.requested IS NULL OR told.requested <= told.brought_back
 ORDER BY c.job_id, c.attempt;
