"""Schemas as they are in a database: all of one, to compare two of a kind, and the names, to compare kinds."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from detent.store.migrate import Migration, load
from detent.testing.stores import is_sqlite, plain_connection

__all__ = ["Names", "described", "known", "names", "taken", "write_step"]

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

_SQLITE_COLUMNS = """
    SELECT m.name, c.name, c."notnull" FROM sqlite_master m, pragma_table_info(m.name) c
     WHERE m.type IN ('table', 'view') AND m.name LIKE 'detent!_%' ESCAPE '!' ORDER BY m.name, c.cid
"""
_POSTGRES_COLUMNS = """
    SELECT table_name, column_name, (is_nullable = 'NO')::int FROM information_schema.columns
     WHERE table_schema = 'detent' ORDER BY table_name, ordinal_position
"""
_SQLITE_INDEXES = (
    "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND name LIKE 'detent!_%' ESCAPE '!'"
)
_POSTGRES_INDEXES = """
    SELECT indexname FROM pg_indexes WHERE schemaname = 'detent'
       AND indexname NOT IN (SELECT conname FROM pg_constraint WHERE connamespace = 'detent'::regnamespace)
"""
_SQLITE_TABLES = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name LIKE 'detent!_%' ESCAPE '!'"
# From PostgreSQL 18 on, NOT NULL has a line here too: that is compared as a property of its column.
_POSTGRES_CONSTRAINTS = """
    SELECT conname FROM pg_constraint
     WHERE connamespace = 'detent'::regnamespace AND contype IN ('c', 'p', 'u', 'f', 'x')
"""
_SQLITE_GUARDED = (
    "SELECT DISTINCT tbl_name FROM sqlite_master WHERE type = 'trigger' AND tbl_name LIKE 'detent!_%' ESCAPE '!'"
)
_POSTGRES_GUARDED = """
    SELECT DISTINCT c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
     WHERE c.relnamespace = 'detent'::regnamespace AND NOT t.tgisinternal
"""


@dataclass(frozen=True, slots=True)
class Names:
    """What a schema calls its parts, without the prefix that they carry on SQLite."""

    columns: dict[str, list[tuple[str, bool]]]
    """Of each table and view, in order, and whether the column is NOT NULL (never known of a view's)."""
    constraints: set[str]
    indexes: set[str]
    guarded: set[str]


def described(url: str) -> dict[str, list[str]]:
    """Everything that makes up the schema behind `url`, in comparable order. Empty where Detent was never there."""
    with closing(plain_connection(url)) as connection:
        if not _is_there(url, connection):
            return {}
        asked = _SQLITE if is_sqlite(url) else _POSTGRES
        return {part: sorted(repr(row) for row in connection.execute(query)) for part, query in asked.items()}


def names(url: str) -> Names:
    """The names of all parts."""
    with closing(plain_connection(url)) as connection:

        def ask(sqlite: str, postgres: str) -> list[Any]:
            found: list[Any] = connection.execute(sqlite if is_sqlite(url) else postgres).fetchall()
            return found

        columns: dict[str, list[tuple[str, bool]]] = {}
        for relation, column, not_null in ask(_SQLITE_COLUMNS, _POSTGRES_COLUMNS):
            columns.setdefault(_bare(relation), []).append((column, bool(not_null)))
        if is_sqlite(url):
            tables = " ".join(sql for (sql,) in connection.execute(_SQLITE_TABLES))
            constraints = set(re.findall(r"\bCONSTRAINT (\w+)", tables))
        else:
            constraints = {name for (name,) in connection.execute(_POSTGRES_CONSTRAINTS)}
        return Names(
            columns,
            constraints,
            {_bare(name) for (name,) in ask(_SQLITE_INDEXES, _POSTGRES_INDEXES)},
            {_bare(name) for (name,) in ask(_SQLITE_GUARDED, _POSTGRES_GUARDED)},
        )


def known(url: str) -> tuple[Migration, ...]:
    """The steps that this code knows for the kind of database behind `url`."""
    return load("sqlite" if is_sqlite(url) else "postgres")


def write_step(url: str, connection: Any, version: int, name: str, checksum: str, oldest_code: int) -> None:
    """Put a step on the database's list of those it has taken."""
    if is_sqlite(url):
        statement = "INSERT INTO detent_migration VALUES (?, ?, ?, ?, 0)"
    else:
        statement = "INSERT INTO detent.migration VALUES (%s, %s, %s, %s, now())"
    connection.execute(statement, (version, name, checksum, oldest_code))


def taken(url: str) -> list[int]:
    """The numbers of the steps that the database has taken."""
    with closing(plain_connection(url)) as connection:
        table = "detent_migration" if is_sqlite(url) else "detent.migration"
        return [number for (number,) in connection.execute(f"SELECT version FROM {table} ORDER BY version")]


def _is_there(url: str, connection: Any) -> bool:
    if is_sqlite(url):
        query = "SELECT 1 FROM sqlite_master WHERE name LIKE 'detent!_%' ESCAPE '!'"
    else:
        query = "SELECT 1 FROM pg_namespace WHERE nspname = 'detent'"
    return connection.execute(query).fetchone() is not None


def _bare(name: str) -> str:
    return name.removeprefix("detent_")
