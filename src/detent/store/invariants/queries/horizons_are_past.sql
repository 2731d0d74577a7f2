-- J16, R3: no horizon of retention is in the future, so retention never deletes a job that has not ended.
SELECT 'horizon' AS entity, CAST(h.n AS TEXT) AS entity_id,
       'it allows to delete whatever ended before ' || to_char(h.before AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS detail
  FROM detent.horizon h
 WHERE h.before > detent.clock() + interval '1 minute'
 ORDER BY h.n;
