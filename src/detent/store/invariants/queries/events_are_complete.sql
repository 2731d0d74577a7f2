-- E1, R3: the events of a job are numbered from 1 without a gap.
SELECT 'job' AS entity, CAST(job_id AS TEXT) AS entity_id, count(*) || ' lines numbered ' || min(seq) || ' to ' || max(seq) AS detail
  FROM detent.event v
 GROUP BY job_id
HAVING min(seq) <> 1 OR max(seq) <> count(*)
 ORDER BY job_id;
