-- B1, B8, G4, R2: the state of a batch run is the one that its newest line in the log led to, and it fits its targets. In the
-- states of rest, no target is queued or applying. Applied: none failed. Partial: some applied, some failed. Failed: none applied,
-- unless a critical error stopped the run. Cancelled: a cancel was requested.
WITH newest AS (
    SELECT l.entity_id, max(l.n) AS n FROM detent.transition_log l
     WHERE l.job_id IS NULL AND l.entity = 'batch_run' GROUP BY l.entity_id
  )
SELECT 'batch_run' AS entity, CAST(b.id AS TEXT) AS entity_id,
       'it is ' || b.state || ', the record says ' || coalesce(l.to_state, 'nothing') || '; ' || b.applied || ' applied, '
       || b.failed || ' failed, ' || (b.queued + b.applying + b.outstanding) || ' on their way' AS detail
  FROM detent.batch_run b
  LEFT JOIN newest t ON t.entity_id = CAST(b.id AS TEXT)
  LEFT JOIN detent.transition_log l ON l.n = t.n
 WHERE l.to_state IS NULL OR l.to_state <> b.state
    OR (b.state IN ('applied', 'partial', 'failed', 'cancelled', 'rolled_back') AND b.queued + b.applying > 0)
    OR (b.state = 'applying' AND b.queued + b.applying + b.outstanding = 0)
    OR (b.state = 'applied' AND b.failed > 0)
    OR (b.state = 'partial' AND b.rollback_requested_at IS NULL AND (b.failed = 0 OR b.applied + b.rolled_back = 0))
    OR (b.state = 'failed' AND (b.failed = 0 OR (b.applied > 0 AND b.critical IS NULL)))
    OR (b.state = 'cancelled' AND b.cancel_requested_at IS NULL)
    OR (b.state = 'rolled_back' AND b.applied > 0)
 ORDER BY b.id;
