-- R3, G1: SQLite finds no damage in the pages of the file. Other invariants find rows that break a CHECK.
-- differs: PostgreSQL cannot check its pages without an extension; there tables and indexes are checked.
SELECT 'file' AS entity, 'database' AS entity_id, integrity_check AS detail
  FROM pragma_integrity_check(20)
 WHERE integrity_check <> 'ok' AND integrity_check NOT LIKE 'CHECK constraint failed%'
 ORDER BY 3;
