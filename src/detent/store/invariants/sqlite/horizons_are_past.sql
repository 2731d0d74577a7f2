-- J16, R3: retention never deletes what has not ended: no horizon lies in the future.
-- differs: the time is :now, from the injected clock.
SELECT 'horizon' AS entity, CAST(h.n AS TEXT) AS entity_id,
       'it allows to delete whatever ended before ' || strftime('%Y-%m-%dT%H:%M:%SZ', h.before / 1000000, 'unixepoch') AS detail
  FROM detent_horizon h
 WHERE h.before > :now + 60 * 1000000
 ORDER BY h.n;
