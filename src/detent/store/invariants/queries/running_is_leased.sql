-- J5, R3: a running job has a lease, and the row of the lease has the job. The reaper finds jobs only there.
SELECT 'job' AS entity, CAST(j.id AS TEXT) AS entity_id,
       CASE WHEN j.lease_id IS NULL OR j.leased_at IS NULL THEN 'it is running without a lease'
            WHEN l.id IS NULL THEN 'it is running under lease ' || j.lease_id || ', which has no row'
            ELSE 'it is running under lease ' || j.lease_id || ', which does not name it' END AS detail
  FROM detent.job j LEFT JOIN detent.lease l ON l.id = j.lease_id
 WHERE j.state = 'running' AND (j.leased_at IS NULL OR l.id IS NULL OR NOT coalesce(j.id = ANY (l.job_ids), false))
 ORDER BY j.id;
