-- Every step belongs to a workflow that has begun, to a generation that there is, and to an attempt that there was before the
-- commit. Attempt 0 is that of a copy, of an earlier generation or of the job from which this one was forked; and of a step that a
-- person has settled.
SELECT 'workflow_step' AS entity, CAST(s.job_id AS TEXT) || '/' || s.path AS entity_id,
       CASE WHEN w.job_id IS NULL THEN 'the workflow has not begun'
            WHEN s.generation > w.generation THEN 'generation ' || s.generation || ' is not there'
            WHEN s.attempt > j.attempt THEN 'attempt ' || s.attempt || ' is not there'
            WHEN s.attempt = 0 THEN 'it is a copy, and there is nothing of which it could be one; nor has a person settled it'
            ELSE 'it follows the commit' END AS detail
  FROM detent.workflow_step s
  JOIN detent.job j ON j.id = s.job_id
  LEFT JOIN detent.workflow w ON w.job_id = s.job_id
  LEFT JOIN (SELECT DISTINCT l.job_id FROM detent.transition_log l
              WHERE l.entity = 'job' AND l.trigger = 'settle' AND l.job_id IS NOT NULL) settled ON settled.job_id = s.job_id
  LEFT JOIN detent.execution e ON e.job_id = s.job_id AND e.committed_at IS NOT NULL
 WHERE w.job_id IS NULL OR s.generation > w.generation OR s.attempt > j.attempt OR e.attempt < s.attempt
    OR (s.attempt = 0 AND s.generation = 1 AND w.forked_from IS NULL AND settled.job_id IS NULL)
 ORDER BY s.job_id, s.generation, s.path;
