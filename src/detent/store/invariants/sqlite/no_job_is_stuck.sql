-- R2, G5: no job is running under a lease that expired more than 61 seconds ago: two leases of 30 seconds and one more.
-- After an outage the reaper waits one lease; beyond this nobody is at work.
-- differs: the time is :now, from the injected clock.
SELECT 'job' AS entity, CAST(j.id AS TEXT) AS entity_id,
       'attempt ' || j.attempt || ' is running and its lease expired at ' || strftime('%Y-%m-%dT%H:%M:%SZ', l.expires_at / 1000000, 'unixepoch') AS detail
  FROM detent_job j JOIN detent_lease l ON l.id = j.lease_id
 WHERE j.state = 'running' AND l.expires_at < :now - 61 * 1000000
 ORDER BY j.id;
