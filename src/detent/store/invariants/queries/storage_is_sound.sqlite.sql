-- R3, G1: SQLite finds no damage in the pages of the file. Other invariants find rows that break a CHECK.
-- It is asked without a limit: SQLite 3.53 takes a number there for the name of a table.
-- differs: PostgreSQL cannot check its pages without an extension; there tables and indexes are checked.
SELECT 'file' AS entity, 'database' AS entity_id, integrity_check AS detail
  FROM pragma_integrity_check
 WHERE integrity_check <> 'ok' AND integrity_check NOT LIKE 'CHECK constraint failed%'
 ORDER BY 3;
