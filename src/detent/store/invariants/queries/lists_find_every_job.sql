-- R3: every job is in the span of its time of creation, and listed if it is failed or cancelled, so that lists find it.
SELECT 'job_span' AS entity, CAST(min(j.id) AS TEXT) || ' to ' || CAST(max(j.id) AS TEXT) AS entity_id,
       'lists by time do not find ' || CAST(count(*) AS TEXT) || ' of its jobs' AS detail
  FROM detent.job j
 WHERE NOT EXISTS (SELECT 1 FROM detent.job_span s
                    WHERE s.created_at = j.created_at AND s.block = j.id >> 10 AND j.id BETWEEN s.first_id AND s.last_id)
 GROUP BY j.created_at, j.id >> 10
UNION ALL
SELECT 'unsuccessful', CAST(j.id AS TEXT), 'it is ' || j.state || ', and lists by state do not find it'
  FROM detent.job j
 WHERE j.state IN ('failed', 'cancelled')
   AND NOT EXISTS (SELECT 1 FROM detent.unsuccessful u WHERE u.state = j.state AND u.job_id = j.id)
UNION ALL
SELECT 'unsuccessful', CAST(u.job_id AS TEXT), 'it is listed as ' || u.state || ', and is not'
  FROM detent.unsuccessful u
 WHERE NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = u.job_id AND j.state = u.state)
 ORDER BY 1, 2;
