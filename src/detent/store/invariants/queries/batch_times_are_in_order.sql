-- B8, R2: a run is queued before it starts and starts before it ends; so is each of its targets.
SELECT 'batch_run' AS entity, CAST(b.id AS TEXT) AS entity_id, 'its times are not in order' AS detail
  FROM detent.batch_run b
 WHERE b.planned_at < b.created_at OR b.previewed_at < b.planned_at OR b.queued_at < b.previewed_at OR b.started_at < b.queued_at
    OR b.finished_at < b.started_at OR b.rollback_requested_at < b.finished_at OR b.rolled_back_at < b.rollback_requested_at
UNION ALL
SELECT 'target', g.run_id || '/' || g.n, 'its times are not in order'
  FROM detent.target g
 WHERE g.previewed_at < g.created_at OR g.queued_at < g.previewed_at OR g.applied_at < g.queued_at OR g.rolled_back_at < g.applied_at
 ORDER BY 1, 2;
