-- R2, R3: the counts of a graph are those of its nodes, a node waits for as many others as are not met, none of them begins
-- before that, and the graph ends with the last.
WITH nodes AS (
    SELECT n.graph_id, sum(CASE WHEN n.outcome = 'succeeded' THEN 1 ELSE 0 END) AS succeeded,
           sum(CASE WHEN n.outcome = 'failed' THEN 1 ELSE 0 END) AS failed
      FROM detent.graph_node n GROUP BY n.graph_id
  ), open_after AS (
    SELECT a.job_id, count(*) AS n FROM detent.job_after a WHERE NOT a.met GROUP BY a.job_id
  )
SELECT 'graph' AS entity, CAST(g.job_id AS TEXT) AS entity_id,
       'succeeded, failed: ' || g.succeeded || ', ' || g.failed || '; there are ' || n.succeeded || ', ' || n.failed AS detail
  FROM detent.graph g JOIN nodes n ON n.graph_id = g.job_id
 WHERE g.succeeded <> n.succeeded OR g.failed <> n.failed
UNION ALL
SELECT 'graph', CAST(g.job_id AS TEXT), 'it is pending, and all its nodes have ended'
  FROM detent.graph g JOIN detent.job j ON j.id = g.job_id
 WHERE j.state = 'pending' AND g.succeeded + g.failed = g.total
UNION ALL
SELECT 'graph_node', CAST(n.job_id AS TEXT), 'its outcome is ' || coalesce(n.outcome, 'open') || ', its job is ' || j.state
  FROM detent.graph_node n JOIN detent.job j ON j.id = n.job_id
 WHERE n.outcome IS DISTINCT FROM CASE WHEN j.state = 'succeeded' THEN 'succeeded' WHEN j.state IN ('failed', 'cancelled') THEN 'failed' END
UNION ALL
SELECT 'graph_node', CAST(n.job_id AS TEXT), 'it waits for ' || n.blocked || ' others; ' || coalesce(a.n, 0) || ' are not met'
  FROM detent.graph_node n LEFT JOIN open_after a ON a.job_id = n.job_id
 WHERE n.blocked <> coalesce(a.n, 0)
UNION ALL
SELECT 'graph_node', CAST(n.job_id AS TEXT), 'it waits for ' || n.blocked || ' others, and is ' || j.state || ' and due'
  FROM detent.graph_node n JOIN detent.job j ON j.id = n.job_id
 WHERE n.blocked > 0 AND j.state IN ('pending', 'running') AND j.due_at <= detent.clock()
UNION ALL
SELECT 'job_after', CAST(a.job_id AS TEXT) || '/' || CAST(a.after_id AS TEXT), 'job ' || a.after_id || ' is ' || j.state || ', and that is not met'
  FROM detent.job_after a JOIN detent.job j ON j.id = a.after_id
 WHERE NOT a.met AND (j.state = 'succeeded' OR (a.kind = 'end' AND j.state IN ('failed', 'cancelled')))
 ORDER BY 1, 2;
