"""What the schema must contain, read from the migrations themselves: triggers, constraints, unique indexes.

`verify` looks for these in the database and `repair` puts guards back from the same text. Where several migrations
define one thing, the last one counts.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from detent.store.migrate import load

__all__ = [
    "Constraint",
    "Function",
    "Trigger",
    "postgres_constraints",
    "postgres_functions",
    "postgres_triggers",
    "sqlite_schema",
]

_FUNCTION = re.compile(
    r"^CREATE (?:OR REPLACE )?"
    r"(?P<rest>FUNCTION detent\.(?P<name>\w+)\([^)]*\) RETURNS (?:trigger|void|bigint|text)"
    r"[^$]*\$\$(?P<body>.*?)\$\$;)",
    re.MULTILINE | re.DOTALL,
)
_TRIGGER = re.compile(
    r"^CREATE TRIGGER (?P<name>\w+)\s+(?P<moment>BEFORE|AFTER) (?P<events>[\w\s,]+?) ON detent\.(?P<table>\w+)"
    r"(?P<how>[^;]*?)EXECUTE FUNCTION detent\.(?P<function>\w+)\(\);",
    re.MULTILINE,
)
_TABLE = re.compile(r"^CREATE TABLE detent\.(?P<table>\w+) \((?P<columns>.*?)^\)", re.MULTILINE | re.DOTALL)
_CONSTRAINT = re.compile(
    r"^  (?P<ddl>CONSTRAINT (?P<name>\w+) (?P<kind>CHECK|PRIMARY KEY|UNIQUE)\b.*?),?$", re.MULTILINE
)
_ADDED = re.compile(
    r"^ALTER TABLE detent\.(?P<table>\w+) ADD CONSTRAINT (?P<name>\w+) (?P<kind>CHECK|PRIMARY KEY|UNIQUE)\b[^;]+;",
    re.MULTILINE,
)
_ALTERED = re.compile(
    r"^ALTER TABLE detent\.(?P<table>\w+)\n(?P<changes>(?:  (?:ADD|DROP) [^;\n]+\n?)+);", re.MULTILINE
)
_ADDED_AMONG_OTHERS = re.compile(r"^  ADD (?P<ddl>CONSTRAINT (?P<name>\w+) (?P<kind>CHECK)\b.*?),?$", re.MULTILINE)
_UNIQUE_INDEX = re.compile(
    r"^(?P<ddl>CREATE UNIQUE INDEX (?P<name>\w+) ON detent\.(?P<table>\w+) [^;]+);", re.MULTILINE
)
_EVENTS = {"INSERT": 4, "DELETE": 8, "UPDATE": 16, "TRUNCATE": 32}  # the bits of pg_trigger.tgtype
_ROW, _BEFORE = 1, 2


@dataclass(frozen=True, slots=True)
class Function:
    """A function that a trigger or a view calls on PostgreSQL; `body` is kept there letter for letter."""

    name: str
    body: str
    ddl: str


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger on PostgreSQL: `kind` as in pg_trigger.tgtype, `columns` those of UPDATE OF in alphabetical order."""

    name: str
    table: str
    function: str
    kind: int
    columns: tuple[str, ...]
    conditional: bool
    ddl: str


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint (kind c, p or u as in pg_constraint.contype) or unique index (kind i) on PostgreSQL."""

    name: str
    table: str
    kind: str
    ddl: str


@functools.cache
def postgres_functions() -> dict[str, Function]:
    """Return the functions that guards and views call, by name."""
    return {
        match["name"]: Function(match["name"], match["body"], f"CREATE OR REPLACE {match['rest']}")
        for match in _FUNCTION.finditer(_postgres_text())
    }


@functools.cache
def postgres_triggers() -> dict[str, Trigger]:
    """The guards of Detent's own tables, by name."""
    return {trigger.name: trigger for trigger in _triggers()}


@functools.cache
def postgres_constraints() -> dict[str, Constraint]:
    """The constraints and unique indexes of Detent's own tables, by name."""
    return {constraint.name: constraint for constraint in _constraints()}


@functools.cache
def sqlite_schema() -> dict[tuple[str, str], str]:
    """The text that SQLite keeps for every table, unique index and trigger of Detent's, by (type, name)."""
    import sqlite3

    with closing(sqlite3.connect(":memory:")) as connection:
        for migration in load("sqlite"):
            connection.executescript(migration.sql)
        rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name")
        return {
            (kind, name): text
            for kind, name, text in rows
            if kind in ("table", "trigger") or (kind == "index" and text.startswith("CREATE UNIQUE"))
        }


def _postgres_text() -> str:
    return "\n".join(migration.sql for migration in load("postgres"))


def _triggers() -> Iterator[Trigger]:
    for match in _TRIGGER.finditer(_postgres_text()):
        events, _, columns = match["events"].partition(" OF ")
        kind = (_BEFORE if match["moment"] == "BEFORE" else 0) + sum(_EVENTS[event] for event in events.split(" OR "))
        yield Trigger(
            name=match["name"],
            table=match["table"],
            function=match["function"],
            kind=kind + _ROW if "FOR EACH ROW" in match["how"] else kind,
            columns=tuple(sorted(column.strip() for column in columns.split(",") if column)),
            conditional="WHEN (" in match["how"],
            ddl=match[0],
        )


def _constraints() -> Iterator[Constraint]:
    """In the order in which the migrations say them."""
    text = _postgres_text()
    found: list[tuple[int, Constraint]] = []

    def add(at: int, match: re.Match[str], table: str, kind: str, ddl: str) -> None:
        found.append((at + match.start(), Constraint(match["name"], table, kind, ddl)))

    for table in _TABLE.finditer(text):
        for match in _CONSTRAINT.finditer(table["columns"]):
            ddl = f"ALTER TABLE detent.{table['table']} ADD {match['ddl']};"
            add(table.start("columns"), match, table["table"], match["kind"][0].lower(), ddl)
    for match in _ADDED.finditer(text):
        add(0, match, match["table"], match["kind"][0].lower(), match[0])
    for altered in _ALTERED.finditer(text):
        for match in _ADDED_AMONG_OTHERS.finditer(altered["changes"]):
            ddl = f"ALTER TABLE detent.{altered['table']} ADD {match['ddl']};"
            add(altered.start("changes"), match, altered["table"], match["kind"][0].lower(), ddl)
    for match in _UNIQUE_INDEX.finditer(text):
        add(0, match, match["table"], "i", f"{match['ddl']};")
    yield from (constraint for _, constraint in sorted(found, key=lambda one: one[0]))
