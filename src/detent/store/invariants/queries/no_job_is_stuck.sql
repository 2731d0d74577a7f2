-- R2, G5: no job is running under a lease that expired more than 61 seconds ago: two leases of 30 seconds and one second.
-- After an outage the reaper waits for one lease. Only a worker that lived after that could have ended the attempt. In a copy
-- of a database there was none, so an expired lease is no violation there.
SELECT 'job' AS entity, CAST(j.id AS TEXT) AS entity_id,
       'attempt ' || j.attempt || ' is running and its lease expired at ' || to_char(l.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS detail
  FROM detent.job j JOIN detent.lease l ON l.id = j.lease_id
 WHERE j.state = 'running' AND l.expires_at < detent.clock() - interval '61 seconds'
   AND l.expires_at < (SELECT max(w.seen_at) FROM detent.worker w) - interval '61 seconds'
 ORDER BY j.id;
