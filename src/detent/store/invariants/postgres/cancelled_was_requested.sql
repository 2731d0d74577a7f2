-- J8: an attempt leads to cancelled only if somebody asked for it after the job was last brought back. An ops run that
-- was claimed and never began is cancelled without a request.
SELECT 'execution' AS entity, CAST(e.job_id AS TEXT) || '/' || CAST(e.attempt AS TEXT) AS entity_id,
       'outcome ' || e.outcome || ' led to cancelled, and no cancel was requested' AS detail
  FROM detent.execution e
 WHERE e.next_state = 'cancelled' AND NOT (e.outcome = 'expired' AND e.started_at IS NULL)
   AND NOT EXISTS (
     SELECT 1 FROM detent.transition_log l
      WHERE l.job_id = e.job_id AND l.trigger = 'request_cancel' AND l.attempt <= e.attempt
        AND NOT EXISTS (
          SELECT 1 FROM detent.transition_log b
           WHERE b.job_id = e.job_id AND b.to_state = 'pending' AND b.n > l.n AND b.attempt < e.attempt))
 ORDER BY e.job_id, e.attempt;
