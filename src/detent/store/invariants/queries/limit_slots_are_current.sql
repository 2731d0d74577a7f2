-- J12, R3: a slot of a limit belongs to an attempt that runs or has ended recently. The next claim under the limit deletes
-- slots of ended attempts, and retention does so every hour. If a worker has lived for two hours, that has happened.
SELECT 'limit_slot' AS entity, s.limit_key || '/' || CAST(s.job_id AS TEXT) AS entity_id,
       CASE WHEN j.id IS NULL THEN 'there is no job ' || s.job_id
            WHEN s.attempt > j.attempt THEN 'it is of attempt ' || s.attempt || ', and the job has had ' || j.attempt
            ELSE 'attempt ' || s.attempt || ' has ended' END AS detail
  FROM detent.limit_slot s
  LEFT JOIN detent.job j ON j.id = s.job_id
  LEFT JOIN detent.execution e ON e.job_id = s.job_id AND e.attempt = s.attempt
 WHERE j.id IS NULL OR s.attempt > j.attempt
    OR coalesce(e.done_at, e.aborted_at) < (
         SELECT max(w.seen_at) FROM detent.worker w WHERE w.seen_at >= w.started_at + interval '2 hours') - interval '2 hours'
 ORDER BY 2;
