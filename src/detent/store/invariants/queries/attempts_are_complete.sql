-- J1, J7, R2, INV attempts monotonic: every attempt up to `ended` has its execution row, and at most one is in flight.
WITH counted AS (
    SELECT j.id, j.attempt, j.ended, coalesce(max(e.attempt), 0) AS newest, count(e.attempt) AS executions
      FROM detent.job j LEFT JOIN detent.execution e ON e.job_id = j.id
     GROUP BY j.id, j.attempt, j.ended
  )
SELECT 'job' AS entity, CAST(id AS TEXT) AS entity_id,
       'attempt ' || attempt || ', ended ' || ended || ', ' || executions || ' executions, the newest of attempt ' || newest
         AS detail
  FROM counted
 WHERE ended <> newest OR executions <> newest OR attempt NOT IN (newest, newest + 1)
 ORDER BY id;
