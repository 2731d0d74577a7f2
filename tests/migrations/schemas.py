"""Schemas as they are in a database: all of one, to compare two of a kind, and the names, to compare kinds."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from detent.store.migrate import Migration, load
from detent.testing.stores import is_sqlite, plain_connection

__all__ = ["Names", "known", "names", "taken", "write_step"]

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


def _bare(name: str) -> str:
    return name.removeprefix("detent_")
