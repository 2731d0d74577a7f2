-- R3, G1: every table survives a crash of the server, and every index can be used.
-- differs: SQLite can check its pages; on PostgreSQL `verify` calls the functions of the extension amcheck, if it is installed.
SELECT 'table' AS entity, c.relname AS entity_id, 'it is UNLOGGED: a crash of the server empties it' AS detail
  FROM pg_catalog.pg_class c
 WHERE c.relnamespace = 'detent'::regnamespace AND c.relkind = 'r' AND c.relpersistence <> 'p'
UNION ALL
SELECT 'index', i.relname, 'it is not valid: queries do not use it'
  FROM pg_catalog.pg_index x
  JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
 WHERE i.relnamespace = 'detent'::regnamespace AND NOT (x.indisvalid AND x.indisready AND x.indislive)
 ORDER BY 1, 2;
