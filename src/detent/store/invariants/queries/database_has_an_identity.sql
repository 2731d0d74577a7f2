-- C5, R2: the database has an identity for every id. Without one, no effect key can be made.
SELECT 'database' AS entity, 'identity' AS entity_id, 'no identity holds for the first ids' AS detail
 WHERE NOT EXISTS (SELECT 1 FROM detent.identity WHERE first_id = 0);
