-- R2, P4: all portions of a completed run are done, and they have as many records as its partitions staged.
WITH staged AS (
    SELECT p.run_id, sum(p.staged) AS records FROM detent.partition p GROUP BY p.run_id
  ), consolidated AS (
    SELECT o.run_id, sum(o.records) AS records FROM detent.portion o WHERE o.done_at IS NOT NULL GROUP BY o.run_id
  )
SELECT 'pipeline_run' AS entity, CAST(r.id AS TEXT) AS entity_id,
       coalesce(s.records, 0) || ' records are staged, ' || coalesce(c.records, 0) || ' consolidated' AS detail
  FROM detent.pipeline_run r LEFT JOIN staged s ON s.run_id = r.id LEFT JOIN consolidated c ON c.run_id = r.id
 WHERE r.state = 'completed' AND coalesce(s.records, 0) <> coalesce(c.records, 0)
 ORDER BY r.id;
