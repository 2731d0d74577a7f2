-- G4, P1, R2: the state of a pipeline run is the one that its newest line in the log led to.
WITH told AS (
    SELECT l.entity_id, max(l.n) AS n FROM detent.transition_log l
     WHERE l.job_id IS NULL AND l.entity = 'pipeline_run' GROUP BY l.entity_id
  )
SELECT 'pipeline_run' AS entity, CAST(r.id AS TEXT) AS entity_id,
       'it is ' || r.state || ', the record says ' || coalesce(l.to_state, 'nothing') AS detail
  FROM detent.pipeline_run r
  LEFT JOIN told t ON t.entity_id = CAST(r.id AS TEXT)
  LEFT JOIN detent.transition_log l ON l.n = t.n
 WHERE l.to_state IS NULL OR l.to_state <> r.state
 ORDER BY r.id;
