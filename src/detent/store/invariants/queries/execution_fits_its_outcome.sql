-- J6, J7: an ended attempt leads to a state that its outcome allows. It does not count only if it was given back, or a probe
-- could not tell.
SELECT 'execution' AS entity, CAST(job_id AS TEXT) || '/' || CAST(attempt AS TEXT) AS entity_id,
       'outcome ' || outcome || ' leads to ' || next_state || CASE WHEN counted THEN ', counted' ELSE ', not counted' END
       || CASE WHEN next_due_at IS NULL THEN '' ELSE ', due again' END AS detail
  FROM detent.execution e
 WHERE (outcome = 'done') <> (next_state = 'succeeded')
    OR (outcome = 'done') <> (committed_at IS NOT NULL)
    OR (outcome = 'done') <> (done_at IS NOT NULL)
    OR (outcome = 'done') = (aborted_at IS NOT NULL)
    OR (outcome = 'cancelled' AND next_state <> 'cancelled')
    OR (outcome IN ('released', 'snoozed', 'throttled', 'parked') AND next_state NOT IN ('pending', 'cancelled'))
    OR (outcome = 'unknown' AND next_state NOT IN ('pending', 'quarantined'))
    OR (NOT counted
        AND NOT (outcome IN ('released', 'snoozed', 'throttled', 'parked', 'unknown', 'expired') AND next_state = 'pending'))
    OR (counted AND outcome IN ('released', 'snoozed', 'throttled', 'parked') AND next_state = 'pending')
    OR (next_state = 'pending') <> (next_due_at IS NOT NULL)
 ORDER BY job_id, attempt;
