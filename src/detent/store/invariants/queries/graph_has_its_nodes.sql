-- R2, R3: a graph has as many nodes as it was started with, and every node has its job.
WITH nodes AS (
    SELECT n.graph_id, count(*) AS total FROM detent.graph_node n GROUP BY n.graph_id
  )
SELECT 'graph' AS entity, CAST(g.job_id AS TEXT) AS entity_id,
       'it was started with ' || g.total || ' nodes; there are ' || coalesce(n.total, 0) AS detail
  FROM detent.graph g LEFT JOIN nodes n ON n.graph_id = g.job_id
 WHERE n.total IS NULL OR g.total <> n.total
UNION ALL
SELECT 'graph_node', CAST(n.job_id AS TEXT), 'there is no job ' || n.job_id
  FROM detent.graph_node n WHERE NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = n.job_id)
 ORDER BY 1, 2;
