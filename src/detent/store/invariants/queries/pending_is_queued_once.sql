-- J1, J4, R3: a pending job has one row in ready or waiting, in its lane and at its due time. Other jobs have none.
WITH queued AS (
    SELECT 'ready' AS place, job_id, lane_id, ready_at AS at, expires_at FROM detent.ready r
    UNION ALL
    SELECT 'waiting', job_id, lane_id, due_at, expires_at FROM detent.waiting w
  )
SELECT 'job' AS entity, CAST(found.id AS TEXT) AS entity_id, found.detail
  FROM (
    SELECT j.id, 'it is ' || j.state || ' and stands ' || count(q.job_id) || ' times in ready and waiting' AS detail
      FROM detent.job j LEFT JOIN queued q ON q.job_id = j.id
     GROUP BY j.id, j.state
    HAVING count(q.job_id) <> CASE WHEN j.state = 'pending' THEN 1 ELSE 0 END
    UNION ALL
    SELECT j.id, 'its row in ' || q.place || ' has another ' ||
                 CASE WHEN q.at <> j.due_at THEN 'time' WHEN q.expires_at IS DISTINCT FROM j.expires_at THEN 'expiry' ELSE 'lane' END
      FROM detent.job j
      JOIN queued q ON q.job_id = j.id
      LEFT JOIN detent.lane l ON l.id = q.lane_id
      LEFT JOIN detent.workflow b ON b.job_id = j.id
     WHERE j.state = 'pending'
       AND (q.at <> j.due_at OR q.expires_at IS DISTINCT FROM j.expires_at OR l.queue IS DISTINCT FROM j.queue OR l.task IS DISTINCT FROM j.task
            OR l.tenant IS DISTINCT FROM j.tenant OR l.priority IS DISTINCT FROM j.priority
            OR l.limit_key <> coalesce(j.limit_key, '') OR l.version <> coalesce(b.version, 0))
    UNION ALL
    SELECT j.id, 'its row in waiting has another priority'
      FROM detent.job j JOIN detent.waiting w ON w.job_id = j.id
     WHERE j.state = 'pending' AND w.priority <> j.priority
  ) found
 ORDER BY found.id;
