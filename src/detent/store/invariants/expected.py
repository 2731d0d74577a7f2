"""The constraints and unique indexes that a PostgreSQL database must have, read from the migrations."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from detent.store.lifecycle_sql import filled, placeholders
from detent.store.migrate import load

__all__ = ["Constraint", "lifecycle_checks", "postgres_constraints", "within"]

_TABLE = re.compile(r"^CREATE TABLE detent\.(?P<table>\w+) \((?P<columns>.*?)^\)", re.MULTILINE | re.DOTALL)
_CONSTRAINT = re.compile(
    r"^  (?P<ddl>CONSTRAINT (?P<name>\w+) (?P<kind>CHECK|PRIMARY KEY|UNIQUE)\b.*?),?$", re.MULTILINE
)
_ADDED = re.compile(
    r"^ALTER TABLE detent\.(?P<table>\w+) ADD (?P<ddl>CONSTRAINT (?P<name>\w+) (?P<kind>CHECK|PRIMARY KEY|UNIQUE)\b"
    r"[^;]+?)(?: NOT VALID)?;",
    re.MULTILINE,
)
_UNIQUE_INDEX = re.compile(
    r"^(?P<ddl>CREATE UNIQUE INDEX (?:CONCURRENTLY )?(?:IF NOT EXISTS )?(?P<name>\w+) ON detent\.(?P<table>\w+) "
    r"[^;]+);",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint (kind c, p or u as in pg_constraint.contype) or a unique index (kind i) on PostgreSQL."""

    name: str
    table: str
    kind: str
    ddl: str
    is_of_lifecycle: bool = False


def postgres_constraints() -> dict[str, Constraint]:
    """Return the constraints and unique indexes of Detent's own tables, by name. The last definition counts."""
    return {
        constraint.name: Constraint(
            constraint.name, constraint.table, constraint.kind, filled(constraint.ddl, "postgres"), of_lifecycle
        )
        for constraint, of_lifecycle in ((one, bool(placeholders(one.ddl))) for one in _constraints())
    }


def lifecycle_checks() -> dict[str, Constraint]:
    """Return the CHECKs that depend on a lifecycle, by name: `detent migrate` replaces those that differ."""
    return {name: constraint for name, constraint in postgres_constraints().items() if constraint.is_of_lifecycle}


@functools.cache
def _constraints() -> tuple[Constraint, ...]:
    return tuple(_found("\n".join(migration.template for migration in load("postgres"))))


def _found(text: str) -> Iterator[Constraint]:
    """Yield them in the order in which the migrations define them."""
    found: list[tuple[int, Constraint]] = []

    def add(at: int, match: re.Match[str], table: str, kind: str, ddl: str) -> None:
        found.append((at + match.start(), Constraint(match["name"], table, kind, ddl)))

    for table in _TABLE.finditer(text):
        for match in _CONSTRAINT.finditer(table["columns"]):
            ddl = f"ALTER TABLE detent.{table['table']} ADD {match['ddl']};"
            add(table.start("columns"), match, table["table"], match["kind"][0].lower(), ddl)
    for match in _ADDED.finditer(text):
        ddl = f"ALTER TABLE detent.{match['table']} ADD {match['ddl']};"
        add(0, match, match["table"], match["kind"][0].lower(), ddl)
    for match in _UNIQUE_INDEX.finditer(text):
        add(0, match, match["table"], "i", f"{match['ddl']};")
    yield from (constraint for _, constraint in sorted(found, key=lambda one: one[0]))


def within(text: str, start: int) -> int:
    """Return the position of the parenthesis that closes the one before `start`."""
    depth, quoted = 1, False
    for at in range(start, len(text)):
        letter = text[at]
        if letter == "'":
            quoted = not quoted
        elif not quoted:
            depth += (letter == "(") - (letter == ")")
            if depth == 0:
                return at
    raise AssertionError(f"no closing parenthesis: {text[start : start + 60]}")
