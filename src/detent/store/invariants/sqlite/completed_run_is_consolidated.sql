-- R2, P4: a completed run has no portion that is not done, and what its portions hold is what its partitions staged.
SELECT 'pipeline_run' AS entity, CAST(r.id AS TEXT) AS entity_id,
       r.staged || ' records are staged, ' || r.consolidated || ' consolidated' AS detail
  FROM detent_pipeline_runs r
 WHERE r.state = 'completed' AND r.staged <> r.consolidated
 ORDER BY r.id;
