-- L8, R3: every state and outcome on record is one this version knows; others are reported, never guessed.
-- Generated from the lifecycle by `python -m detent.store.invariants.generate`; a test keeps it equal.
SELECT 'job' AS entity, CAST(id AS TEXT) AS entity_id, 'state ' || state AS detail
  FROM detent.job j
 WHERE state NOT IN ('pending', 'running', 'succeeded', 'failed', 'quarantined', 'cancelled')
UNION ALL
SELECT 'execution', CAST(job_id AS TEXT) || '/' || CAST(attempt AS TEXT),
       'outcome ' || outcome || ', next state ' || next_state
  FROM detent.execution e
 WHERE outcome NOT IN ('done', 'error', 'expired', 'crashed', 'cancelled', 'released', 'snoozed', 'throttled', 'timed_out', 'unknown')
    OR next_state NOT IN ('pending', 'succeeded', 'failed', 'quarantined', 'cancelled')
UNION ALL
SELECT 'transition_log', CAST(n AS TEXT),
       'job ' || entity_id || ' from ' || coalesce(from_state, 'nothing') || ' to ' || to_state
  FROM detent.transition_log l
 WHERE entity = 'job'
   AND (to_state NOT IN ('pending', 'running', 'succeeded', 'failed', 'quarantined', 'cancelled')
        OR (trigger <> 'repair' AND coalesce(from_state, '') NOT IN ('pending', 'running', 'succeeded', 'failed', 'quarantined', 'cancelled')))
 ORDER BY 1, 2;
