-- J16, R3: retention never deletes what has not ended: no horizon lies in the future.
SELECT 'horizon' AS entity, h.n::text AS entity_id, 'it allows to delete whatever ended before ' || h.before AS detail
  FROM detent.horizon h
 WHERE h.before > detent.clock() + interval '1 minute'
 ORDER BY h.n;
