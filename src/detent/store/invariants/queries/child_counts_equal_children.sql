-- The counts of a group of children are those of its children, until its parent has come to rest for good, or has continued as
-- new: after that, retention may delete them.
WITH found AS (
    SELECT g.parent_id, g.generation, g.path, g.total, g.succeeded, g.failed, g.dead, g.closed, count(c.id) AS children,
           count(CASE WHEN c.state = 'succeeded' THEN 1 END) AS has_succeeded,
           count(CASE WHEN c.state IN ('failed', 'cancelled') THEN 1 END) AS has_failed,
           count(CASE WHEN c.state = 'quarantined' THEN 1 END) AS has_died
      FROM detent.child_group g
      JOIN detent.job p ON p.id = g.parent_id AND p.state IN ('pending', 'running', 'quarantined')
      JOIN detent.workflow w ON w.job_id = g.parent_id AND (w.generation = g.generation OR w.seeds IS NOT NULL)
      LEFT JOIN detent.job c ON c.parent_id = g.parent_id AND c.id >= g.first_id AND c.id < g.first_id + g.total
     GROUP BY g.parent_id, g.generation, g.path, g.total, g.succeeded, g.failed, g.dead, g.closed
  )
SELECT 'child_group' AS entity, CAST(parent_id AS TEXT) || '/' || path AS entity_id,
       'it counts ' || succeeded || ' succeeded, ' || failed || ' failed, ' || dead || ' dead of ' || total || '; there are '
       || has_succeeded || ', ' || has_failed || ', ' || has_died || ' of ' || children AS detail
  FROM found
 WHERE succeeded <> has_succeeded OR failed <> has_failed OR dead <> has_died OR (closed AND children <> total)
 ORDER BY parent_id, generation, path;
