-- J3, R3: no two rows have the same key. That is possible only if a unique index was dropped.
SELECT 'job' AS entity, CAST(id AS TEXT) AS entity_id, count(*) || ' rows' AS detail
  FROM detent.job j GROUP BY id HAVING count(*) > 1
UNION ALL
SELECT 'execution', CAST(job_id AS TEXT) || '/' || CAST(attempt AS TEXT), count(*) || ' rows'
  FROM detent.execution e GROUP BY job_id, attempt HAVING count(*) > 1
UNION ALL
SELECT 'event', CAST(job_id AS TEXT) || '/' || CAST(seq AS TEXT), count(*) || ' rows'
  FROM detent.event v GROUP BY job_id, seq HAVING count(*) > 1
UNION ALL
SELECT 'event', CAST(job_id AS TEXT) || '/' || CAST(min(seq) AS TEXT), count(*) || ' lines under the key ' || key
  FROM detent.event v WHERE key IS NOT NULL GROUP BY job_id, key HAVING count(*) > 1
UNION ALL
SELECT 'job_key', tenant || '/' || key, count(*) || ' rows'
  FROM detent.job_key k GROUP BY tenant, key HAVING count(*) > 1
UNION ALL
SELECT 'lane', CAST(min(id) AS TEXT), count(*) || ' lanes of one rank'
  FROM detent.lane l GROUP BY queue, task, tenant, priority, limit_key, version HAVING count(*) > 1
UNION ALL
SELECT 'lease', CAST(id AS TEXT), count(*) || ' rows'
  FROM detent.lease l GROUP BY id HAVING count(*) > 1
UNION ALL
SELECT 'dead', CAST(job_id AS TEXT), count(*) || ' rows'
  FROM detent.dead d GROUP BY job_id HAVING count(*) > 1
UNION ALL
SELECT 'workflow_step', CAST(job_id AS TEXT) || '/' || path, count(*) || ' rows'
  FROM detent.workflow_step s GROUP BY job_id, generation, path HAVING count(*) > 1
UNION ALL
SELECT 'workflow_signal', CAST(job_id AS TEXT) || '/' || CAST(signal_seq AS TEXT), count(*) || ' steps have taken it'
  FROM detent.workflow_step s WHERE signal_seq IS NOT NULL
 GROUP BY job_id, signal_name, signal_seq, CASE WHEN attempt = 0 THEN generation ELSE 0 END HAVING count(*) > 1
 ORDER BY 1, 2;
