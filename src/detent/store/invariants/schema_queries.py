"""The queries of `schema_checks`, around what they compare with."""

from __future__ import annotations

CHECKS = """\
-- G4, R3: every row satisfies every CHECK of its table. A row that does not was written past the CHECK.
{checks}
 ORDER BY 1, 2;
"""

GUARDS_POSTGRES = """\
-- L2, E1, G4, R3: every guard is there, enabled, for the same events and columns, with its function's own body.
WITH wanted (name, relation, function, kind, columns, condition) AS (VALUES
    {triggers}
  ),
  body (name, digest) AS (VALUES
    {functions}
  )
SELECT 'trigger' AS entity, w.name AS entity_id,
       CASE WHEN t.oid IS NULL THEN 'it is missing on ' || w.relation
            WHEN t.tgenabled NOT IN ('O', 'A') THEN 'it is disabled on ' || w.relation
            ELSE 'it is not the guard of ' || w.relation || ' that was installed' END AS detail
  FROM wanted w
  LEFT JOIN pg_catalog.pg_trigger t
    ON t.tgname = w.name AND t.tgrelid = to_regclass('detent.' || w.relation) AND NOT t.tgisinternal
  LEFT JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
 WHERE t.oid IS NULL OR t.tgenabled NOT IN ('O', 'A')
    OR t.tgtype <> w.kind OR p.proname <> w.function OR p.pronamespace <> 'detent'::regnamespace
    OR w.condition <> CASE WHEN t.tgqual IS NULL THEN '' ELSE coalesce(md5({condition_text}), '') END
    OR w.columns <> coalesce((SELECT string_agg(a.attname, ',' ORDER BY a.attname COLLATE "C")
                                FROM pg_catalog.pg_attribute a
                               WHERE a.attrelid = t.tgrelid AND a.attnum = ANY (t.tgattr)), '')
UNION ALL
SELECT 'function', b.name, CASE WHEN p.oid IS NULL THEN 'it is missing' ELSE 'its body was changed' END
  FROM body b
  LEFT JOIN pg_catalog.pg_proc p ON p.proname = b.name AND p.pronamespace = 'detent'::regnamespace
 WHERE p.oid IS NULL OR md5(p.prosrc) <> b.digest
 ORDER BY 1, 2;
"""

CONSTRAINTS_POSTGRES = """\
-- C1, J3, R3: every CHECK, primary key and unique index is there as it was defined, valid and enforced.
WITH wanted (name, relation, kind, digest) AS (VALUES
    {constraints}
  ),
  found AS (
    SELECT w.name, c.conrelid, c.convalidated AND pg_get_constraintdef(c.oid) NOT LIKE '%NOT ENFORCED%' AS enforced,
           md5({constraint_text}) AS digest
      FROM wanted w
      JOIN pg_catalog.pg_constraint c
        ON c.conname = w.name AND c.conrelid = to_regclass('detent.' || w.relation) AND c.contype = w.kind::"char"
     WHERE w.kind <> 'i'
    UNION ALL
    SELECT w.name, x.indrelid, x.indisunique AND x.indisvalid AND x.indisready, md5({index_text})
      FROM wanted w
      JOIN pg_catalog.pg_index x ON x.indexrelid = to_regclass('detent.' || w.name)
       AND x.indrelid = to_regclass('detent.' || w.relation)
     WHERE w.kind = 'i'
  )
SELECT CASE WHEN w.kind = 'i' THEN 'index' ELSE 'constraint' END AS entity, w.name AS entity_id,
       CASE WHEN f.name IS NULL THEN 'it is missing on ' WHEN NOT f.enforced THEN 'it is not enforced on '
            ELSE 'its definition was changed on ' END || w.relation AS detail
  FROM wanted w LEFT JOIN found f ON f.name = w.name
 WHERE f.name IS NULL OR NOT f.enforced OR f.digest <> w.digest
 ORDER BY 1, 2;
"""

DEFINITIONS_POSTGRES = """\
-- L2, R3: every function, view, index and column is there as it was defined, and nothing on Detent's tables that Detent
-- did not install.
-- The bodies of the verbs are compared if this release has installed them.
WITH wanted_index (name, digest) AS (VALUES
    {indexes}
  ),
  wanted_column (relation, name, type, required, standard) AS (VALUES
    {columns}
  ),
  wanted_view (name) AS (VALUES
    {views}
  ),
  wanted_trigger (name) AS (VALUES
    {triggers}
  ),
  ours AS (
    SELECT c.oid, c.relname FROM pg_catalog.pg_class c
     WHERE c.relnamespace = 'detent'::regnamespace AND c.relkind IN ('r', 'p')
  ),
  wanted_body (name, digest) AS (VALUES
    {functions}
  ),
  body AS (
    SELECT w.name, w.digest FROM wanted_body w
     WHERE EXISTS (SELECT 1 FROM detent.installed i
                    WHERE i.release = {release} AND i.fingerprint = {fingerprint} AND i.complete)
  )
SELECT 'index' AS entity, w.name AS entity_id,
       CASE WHEN x.indexrelid IS NULL THEN 'it is missing'
            WHEN NOT (x.indisvalid AND x.indisready) THEN 'it is not valid'
            ELSE 'its definition was changed' END AS detail
  FROM wanted_index w LEFT JOIN pg_catalog.pg_index x ON x.indexrelid = to_regclass('detent.' || w.name)
 WHERE x.indexrelid IS NULL OR NOT (x.indisvalid AND x.indisready) OR md5({index_text}) <> w.digest
UNION ALL
SELECT 'column', w.relation || '.' || w.name,
       CASE WHEN a.attnum IS NULL THEN 'it is missing' ELSE 'its type, its default or NOT NULL was changed' END
  FROM wanted_column w
  LEFT JOIN pg_catalog.pg_attribute a
    ON a.attrelid = to_regclass('detent.' || w.relation) AND a.attname = w.name AND NOT a.attisdropped
  LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
 WHERE a.attnum IS NULL OR format_type(a.atttypid, a.atttypmod) <> w.type OR a.attnotnull <> w.required
    OR {default_text} <> w.standard
UNION ALL
SELECT 'view', w.name, 'it is missing'
  FROM wanted_view w
 WHERE NOT EXISTS (SELECT 1 FROM pg_catalog.pg_class c
                    WHERE c.oid = to_regclass('detent.' || w.name) AND c.relkind = 'v')
UNION ALL
SELECT 'function', b.name,
       CASE WHEN NOT EXISTS (SELECT 1 FROM pg_catalog.pg_proc p
                              WHERE p.proname = b.name AND p.pronamespace = 'detent'::regnamespace)
            THEN 'it is missing' ELSE 'its body was changed' END
  FROM body b
 WHERE NOT EXISTS (SELECT 1 FROM pg_catalog.pg_proc p
                    WHERE p.proname = b.name AND p.pronamespace = 'detent'::regnamespace AND md5(p.prosrc) = b.digest)
UNION ALL
SELECT 'rule', o.relname || '.' || r.rulename, 'Detent did not install it'
  FROM ours o JOIN pg_catalog.pg_rewrite r ON r.ev_class = o.oid
UNION ALL
SELECT 'row_security', c.relname, 'row security is on: rows can be hidden from workers'
  FROM pg_catalog.pg_class c JOIN ours o ON o.oid = c.oid
 WHERE c.relrowsecurity OR c.relforcerowsecurity
UNION ALL
SELECT 'strange_trigger', o.relname || '.' || t.tgname, 'Detent did not install it'
  FROM ours o JOIN pg_catalog.pg_trigger t ON t.tgrelid = o.oid AND NOT t.tgisinternal
 WHERE t.tgname NOT IN (SELECT w.name FROM wanted_trigger w)
   AND (t.tgname <> 'database_closed' OR t.tgfoid IS DISTINCT FROM to_regprocedure('detent.database_closed()'))
 ORDER BY 1, 2;
"""

DEFINITIONS_SQLITE = """\
-- L2, R3: every view and index is there, letter for letter, and Detent's tables have no trigger but Detent's own.
-- differs: PostgreSQL has functions, rules and row security.
WITH wanted (type, name, text) AS (VALUES
    {expected}
  ),
  wanted_trigger (name) AS (VALUES
    {triggers}
  )
SELECT w.type AS entity, w.name AS entity_id,
       CASE WHEN s.name IS NULL THEN 'it is missing' ELSE 'its definition was changed' END AS detail
  FROM wanted w LEFT JOIN sqlite_master s ON s.type = w.type AND s.name = w.name
 WHERE s.name IS NULL OR s.sql <> w.text
UNION ALL
SELECT 'strange_trigger', substr(s.tbl_name, 8) || '.' || s.name, 'Detent did not install it'
  FROM sqlite_master s
 WHERE s.type = 'trigger' AND s.tbl_name LIKE 'detent!_%' ESCAPE '!'
   AND s.name NOT IN (SELECT w.name FROM wanted_trigger w)
   AND s.name NOT LIKE 'detent!_closed!_%' ESCAPE '!'
 ORDER BY 1, 2;
"""

SCHEMA_SQLITE = """\
-- {what}
-- differs: SQLite keeps the text of its schema, so the text is compared.
WITH wanted (type, name, text) AS (VALUES
    {expected}
  )
SELECT w.type AS entity, w.name AS entity_id,
       CASE WHEN s.name IS NULL THEN 'it is missing' ELSE 'its definition was changed' END AS detail
  FROM wanted w LEFT JOIN sqlite_master s ON s.type = w.type AND s.name = w.name
 WHERE s.name IS NULL OR s.sql <> w.text
 ORDER BY 1, 2;
"""
