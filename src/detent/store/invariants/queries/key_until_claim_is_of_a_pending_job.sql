-- J12, R3: a key that is held until the first claim belongs to a job that has not been claimed, and its queue row says so.
WITH holder AS (
    SELECT r.job_id FROM detent.ready r WHERE r.holds_key
    UNION
    SELECT w.job_id FROM detent.waiting w WHERE w.holds_key
  )
SELECT 'job_key' AS entity, k.tenant || '/' || k.key AS entity_id,
       CASE WHEN j.id IS NULL THEN 'job ' || k.job_id || ' is gone'
            WHEN j.state <> 'pending' THEN 'job ' || k.job_id || ' is ' || j.state
            ELSE 'the queue does not know that job ' || k.job_id || ' holds it' END AS detail
  FROM detent.job_key k
  LEFT JOIN detent.job j ON j.id = k.job_id
  LEFT JOIN holder ON holder.job_id = k.job_id
 WHERE k.until_claim AND (j.id IS NULL OR j.state <> 'pending' OR holder.job_id IS NULL)
 ORDER BY k.tenant, k.key;
