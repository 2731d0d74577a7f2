"""The query for rows that break a CHECK of their table: a connection that ignores CHECKs can write such a row."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from contextlib import closing

from detent.store.invariants.postgres_definitions import postgres_constraints
from detent.store.migrate import load
from detent.store.sql_files import Dialect, closing_parenthesis

__all__ = ["checks", "checks_sql"]

_NAMED = re.compile(r"\bCONSTRAINT (?P<name>\w+) CHECK \(")

_KEY_COLUMNS = """
SELECT m.name, c.name, c.pk FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND c.pk
"""


def checks(dialect: Dialect) -> dict[str, dict[str, str]]:
    """Return the expression of every CHECK by its name, by the name of its table without a prefix."""
    found: dict[str, dict[str, str]] = {}
    if dialect == "postgres":
        for constraint in postgres_constraints().values():
            if constraint.kind == "c":
                found.setdefault(constraint.table, {}).update(_expressions(constraint.ddl))
    else:
        from detent.store.sqlite.installed_parts import expected_schema

        for (kind, name), text in expected_schema().items():
            if kind == "table" and (expressions := dict(_expressions(text))):
                found[name.removeprefix("detent_")] = expressions
    return {table: found[table] for table in sorted(found)}


def checks_sql(dialect: Dialect) -> str:
    """Return the query for the rows that break a CHECK, table by table."""
    prefix = "detent." if dialect == "postgres" else "detent_"
    keys = _keys()
    parts = []
    for table, expressions in checks(dialect).items():
        broken = " ".join(f"WHEN NOT ({text}) THEN '{name}'" for name, text in expressions.items())
        holds = " AND ".join(f"({text})" for text in expressions.values())
        key = " || '/' || ".join(f"CAST({column} AS TEXT)" for column in keys[table])
        parts.append(
            f"SELECT '{table}' AS entity, {key} AS entity_id,\n"
            f"       'it breaks ' || CASE {broken} END AS detail\n"
            f"  FROM {prefix}{table}\n WHERE NOT ({holds})"
        )
    return "\nUNION ALL\n".join(parts)


def _expressions(text: str) -> Iterator[tuple[str, str]]:
    for match in _NAMED.finditer(text):
        yield match["name"], text[match.end() : closing_parenthesis(text, match.end())]


@functools.cache
def _keys() -> dict[str, list[str]]:
    """Return the columns of each table's primary key; both databases have the same."""
    import sqlite3

    with closing(sqlite3.connect(":memory:")) as connection:
        for migration in load("sqlite"):
            connection.executescript(migration.sql)
        found: dict[str, list[tuple[int, str]]] = {}
        for table, column, rank in connection.execute(_KEY_COLUMNS):
            found.setdefault(table.removeprefix("detent_"), []).append((rank, column))
        return {table: [column for _, column in sorted(columns)] for table, columns in found.items()}
