"""Everything that makes up the schema of a database, to compare two of a kind."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from detent.testing.stores import is_sqlite, plain_connection

__all__ = ["described"]

_SQLITE = {
    "everything": "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE tbl_name LIKE 'detent!_%' ESCAPE '!'",
    "ids": "SELECT next FROM detent_ids",
    "steps": "SELECT version, name, checksum, oldest_code FROM detent_migration",
    "installed": "SELECT release, fingerprint, complete FROM detent_installed",
}
_POSTGRES = {
    "relations": "SELECT relname, relkind, reloptions FROM pg_class WHERE relnamespace = 'detent'::regnamespace",
    "columns": """SELECT table_name, column_name, ordinal_position, data_type, is_nullable, column_default, is_identity
                    FROM information_schema.columns WHERE table_schema = 'detent'""",
    "constraints": """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
                        FROM pg_constraint WHERE connamespace = 'detent'::regnamespace""",
    "indexes": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'detent'",
    "views": "SELECT viewname, definition FROM pg_views WHERE schemaname = 'detent'",
    "triggers": """SELECT pg_get_triggerdef(t.oid), t.tgenabled FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
                    WHERE c.relnamespace = 'detent'::regnamespace AND NOT t.tgisinternal""",
    "functions": """SELECT oid::regprocedure::text, pg_get_functiondef(oid), proacl::text
                      FROM pg_proc WHERE pronamespace = 'detent'::regnamespace""",
    "types": """SELECT typname, typtype FROM pg_type WHERE typnamespace = 'detent'::regnamespace AND typtype <> 'b'""",
    "sequences": "SELECT sequencename, data_type::text, start_value, increment_by, last_value FROM pg_sequences "
    "WHERE schemaname = 'detent'",
    "comments": """SELECT objoid::regclass::text, objsubid, description FROM pg_description
                    WHERE classoid = 'pg_class'::regclass
                      AND objoid IN (SELECT oid FROM pg_class WHERE relnamespace = 'detent'::regnamespace)""",
    "steps": "SELECT version, name, checksum, oldest_code FROM detent.migration",
    "installed": "SELECT release, fingerprint, complete FROM detent.installed",
}


def described(url: str) -> dict[str, list[str]]:
    """Everything that makes up the schema behind `url`, in comparable order. Empty where Detent was never there."""
    with closing(plain_connection(url)) as connection:
        if not _is_there(url, connection):
            return {}
        asked = _SQLITE if is_sqlite(url) else _POSTGRES
        return {part: sorted(repr(row) for row in connection.execute(query)) for part, query in asked.items()}


def _is_there(url: str, connection: Any) -> bool:
    if is_sqlite(url):
        query = "SELECT 1 FROM sqlite_master WHERE name LIKE 'detent!_%' ESCAPE '!'"
    else:
        query = "SELECT 1 FROM pg_namespace WHERE nspname = 'detent'"
    return connection.execute(query).fetchone() is not None
