-- R2, G5: no job is running under a lease that expired more than 61 seconds ago: two leases of 30 seconds and one more.
-- After an outage the reaper waits one lease. Only a worker that lived after that could have ended the attempt: in a copy of
-- a database, where none has, an expired lease is no violation.
-- differs: the time is :now, from the injected clock.
SELECT 'job' AS entity, CAST(j.id AS TEXT) AS entity_id,
       'attempt ' || j.attempt || ' is running and its lease expired at ' || strftime('%Y-%m-%dT%H:%M:%SZ', l.expires_at / 1000000, 'unixepoch') AS detail
  FROM detent_job j JOIN detent_lease l ON l.id = j.lease_id
 WHERE j.state = 'running' AND l.expires_at < :now - 61 * 1000000
   AND l.expires_at < (SELECT max(w.seen_at) FROM detent_worker w) - 61 * 1000000
 ORDER BY j.id;
