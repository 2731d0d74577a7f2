-- R3: attempts are counted from zero on a job and from one in its executions; attempts_max is at least one.
SELECT 'job' AS entity, CAST(id AS TEXT) AS entity_id,
       'attempt ' || attempt || ', ended ' || ended || ', spared ' || spared || ', attempts_max ' || attempts_max AS detail
  FROM detent.job j
 WHERE attempt < 0 OR ended < 0 OR spared < 0 OR attempts_max < 1
UNION ALL
SELECT 'execution', CAST(job_id AS TEXT) || '/' || CAST(attempt AS TEXT), 'attempts begin with 1'
  FROM detent.execution e
 WHERE attempt < 1
 ORDER BY 1 DESC, 2;
