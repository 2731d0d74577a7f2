-- L5, O1, R2: an ops run is a job with one attempt and a row in ops_run; it has metadata of its end only if it has ended.
SELECT 'job' AS entity, CAST(j.id AS TEXT) AS entity_id,
       CASE WHEN r.job_id IS NULL THEN 'it is an ops run without a project and an environment'
            WHEN r.finish_metadata IS NOT NULL AND j.state IN ('pending', 'running') THEN 'it is ' || j.state || ' and was finished'
            ELSE 'it is ' || j.state || ' after attempt ' || CAST(j.attempt AS TEXT) || ', and an ops run is tried once' END AS detail
  FROM detent.job j LEFT JOIN detent.ops_run r ON r.job_id = j.id
 WHERE j.task = 'ops.run'
   AND (r.job_id IS NULL OR j.attempt > 1 OR j.state = 'quarantined' OR (j.state = 'pending' AND j.attempt > 0)
        OR (r.finish_metadata IS NOT NULL AND j.state IN ('pending', 'running')))
UNION ALL
SELECT 'ops_run', CAST(r.job_id AS TEXT), 'there is no job ' || r.job_id || ' of an ops run'
  FROM detent.ops_run r WHERE NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = r.job_id AND j.task = 'ops.run')
 ORDER BY 1, 2;
