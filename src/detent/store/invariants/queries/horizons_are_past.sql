-- J16, R3: retention never deletes what has not ended: no horizon lies in the future.
SELECT 'horizon' AS entity, CAST(h.n AS TEXT) AS entity_id,
       'it allows to delete whatever ended before ' || to_char(h.before AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS detail
  FROM detent.horizon h
 WHERE h.before > detent.clock() + interval '1 minute'
 ORDER BY h.n;
