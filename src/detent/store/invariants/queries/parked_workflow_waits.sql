-- A workflow that is parked says what it waits for, and the attempt that has parked it is on record.
SELECT 'workflow' AS entity, CAST(w.job_id AS TEXT) AS entity_id,
       CASE WHEN e.job_id IS NULL THEN 'attempt ' || w.parked_attempt || ' did not end as parked'
            ELSE 'it is parked and waits for nothing' END AS detail
  FROM detent.workflow w
  JOIN detent.job j ON j.id = w.job_id
  LEFT JOIN detent.execution e ON e.job_id = w.job_id AND e.attempt = w.parked_attempt AND e.outcome = 'parked'
  LEFT JOIN detent.waiting q ON q.job_id = w.job_id AND q.limit_key IS NULL
  LEFT JOIN (SELECT DISTINCT x.job_id FROM detent.workflow_wait x) waits ON waits.job_id = w.job_id
 WHERE w.parked_attempt IS NOT NULL
   AND (e.job_id IS NULL
        OR (j.state = 'pending' AND j.ended = w.parked_attempt AND q.job_id IS NOT NULL AND waits.job_id IS NULL))
 ORDER BY w.job_id;
