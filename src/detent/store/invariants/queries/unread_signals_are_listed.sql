-- The list of unread signals has exactly those that no step has taken.
WITH found AS (
    SELECT g.job_id, g.name, g.seq, 1 AS sent, 0 AS listed FROM detent.workflow_signal g
    UNION ALL
    SELECT s.job_id, s.signal_name, s.signal_seq, -1, 0 FROM detent.workflow_step s WHERE s.signal_seq IS NOT NULL
    UNION ALL
    SELECT u.job_id, u.name, u.seq, 0, 1 FROM detent.workflow_unread u
  )
SELECT 'workflow_unread' AS entity, CAST(job_id AS TEXT) || '/' || CAST(seq AS TEXT) AS entity_id,
       CASE WHEN sum(listed) = 0 THEN 'no step has taken it, and it is not listed'
            ELSE 'it is listed, and a step has taken it or it was never sent' END AS detail
  FROM found
 GROUP BY job_id, name, seq
HAVING (CASE WHEN sum(sent) > 0 THEN 1 ELSE 0 END) <> sum(listed)
 ORDER BY job_id, seq;
