-- What is undone is a step that has an undo, and steps are undone in the reverse order of their records. A job that undoes the steps of
-- another is named by that one, unless that has begun a new generation since.
WITH undone AS (
    SELECT u.job_id, u.generation, u.path, s.path AS step, s.seq, s.undo, s.error,
           lag(s.seq) OVER (PARTITION BY u.job_id, u.generation ORDER BY u.seq) AS previous
      FROM detent.workflow_step u
      JOIN detent.workflow w ON w.job_id = u.job_id
      JOIN detent.job j ON j.id = coalesce(w.undo_of, w.job_id)
      LEFT JOIN detent.workflow_step s
        ON s.job_id = coalesce(w.undo_of, w.job_id) AND s.generation = u.generation
       AND s.path = substr(u.path, 1, length(u.path) - 5)
     WHERE u.kind = 'undo' AND u.path <> '~undone'
  )
SELECT 'workflow_step' AS entity, CAST(job_id AS TEXT) || '/' || path AS entity_id,
       CASE WHEN step IS NULL THEN 'it undoes a step that is not there'
            WHEN NOT undo OR error IS NOT NULL THEN 'it undoes a step that has no undo'
            ELSE 'a step that was recorded before it was undone first' END AS detail
  FROM undone
 WHERE step IS NULL OR NOT undo OR error IS NOT NULL OR previous < seq
UNION ALL
SELECT 'workflow', CAST(w.job_id AS TEXT), 'job ' || w.undo_of || ' does not say that it is undone by this one'
  FROM detent.workflow w JOIN detent.workflow o ON o.job_id = w.undo_of AND o.generation = w.generation
 WHERE o.undone_by IS NULL OR o.undone_by <> w.job_id
UNION ALL
SELECT 'workflow', CAST(o.job_id AS TEXT), 'job ' || o.undone_by || ' does not undo it'
  FROM detent.workflow o JOIN detent.job j ON j.id = o.undone_by LEFT JOIN detent.workflow w ON w.job_id = o.undone_by
 WHERE w.undo_of IS NULL OR w.undo_of <> o.job_id
 ORDER BY 1, 2;
