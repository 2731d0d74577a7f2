"""The tables that a move copies, read from the migrations for PostgreSQL. The same tables are on SQLite."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from detent.store.invariants.postgres_definitions import postgres_columns, postgres_constraints

__all__ = ["KEPT", "LEFT_OUT", "OF_A_NEW_DATABASE", "Column", "Kind", "Table", "all_tables", "copied_tables"]

Kind: TypeAlias = Literal["int2", "int4", "int8", "bool", "text", "timestamptz", "float8", "int8[]"]

_KINDS: dict[str, Kind] = {
    "smallint": "int2",
    "integer": "int4",
    "bigint": "int8",
    "boolean": "bool",
    "text": "text",
    "timestamp with time zone": "timestamptz",
    "double precision": "float8",
    "bigint[]": "int8[]",
}

LEFT_OUT = {
    "migration": "the target has its own schema",
    "installed": "the target has its own schema",
    "database_move": "each database has its own",
    "database_move_table": "each database has its own",
    "worker": "no worker is alive",
    "lease": "no job is running",
    "service": "no worker is alive, so no service has a holder",
}
"""Tables that are not copied, and why."""

KEPT = ("migration", "installed")
"""Tables that keep their rows when a database is emptied for a move into it."""

OF_A_NEW_DATABASE = ("identity", "signal_key", "watch")
"""Tables that have a row in a new database. A move replaces it."""

_COLUMNS = re.compile(r"PRIMARY KEY \((?P<columns>[^)]+)\)")


@dataclass(frozen=True, slots=True)
class Column:
    """A column, with its type on PostgreSQL."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns, and those of its primary key."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(column.name for column in self.columns)

    def key_of(self, row: tuple[object, ...]) -> list[object]:
        """Return the key of a row."""
        names = self.names
        return [row[names.index(name)] for name in self.key]

    def texts(self) -> tuple[int, ...]:
        """Return the places of columns whose values have no fixed size."""
        return tuple(at for at, column in enumerate(self.columns) if column.kind in ("text", "int8[]"))


@functools.cache
def all_tables() -> tuple[Table, ...]:
    """Return every table of Detent, in the order of the migrations."""
    columns: dict[str, list[Column]] = {}
    for (table, name), (type_, _, _) in postgres_columns().items():
        columns.setdefault(table, []).append(Column(name, _KINDS[type_]))
    keys = {
        constraint.table: _key(constraint.ddl)
        for constraint in postgres_constraints().values()
        if constraint.kind == "p"
    }
    return tuple(Table(name, tuple(found), keys[name]) for name, found in columns.items())


def copied_tables() -> tuple[Table, ...]:
    """Return the tables that a move copies."""
    return tuple(table for table in all_tables() if table.name not in LEFT_OUT)


def _key(ddl: str) -> tuple[str, ...]:
    match = _COLUMNS.search(ddl)
    assert match is not None, ddl
    return tuple(column.strip() for column in match["columns"].split(","))
