-- J10, R3: a job is quarantined exactly when it is among the dead letters, under its own tenant, queue and task.
SELECT 'job' AS entity, CAST(j.id AS TEXT) AS entity_id,
       CASE WHEN d.job_id IS NULL THEN 'it is quarantined and not among the dead letters'
            WHEN j.state <> 'quarantined' THEN 'it is ' || j.state || ' and among the dead letters'
            ELSE 'its dead letter has another tenant, queue or task' END AS detail
  FROM detent.job j LEFT JOIN detent.dead d ON d.job_id = j.id
 WHERE (j.state = 'quarantined') <> (d.job_id IS NOT NULL)
    OR d.tenant <> j.tenant OR d.queue <> j.queue OR d.task <> j.task
 ORDER BY j.id;
