"""How a PostgreSQL database differs from what this release installs.

`detent migrate` replaces what differs, and `verify` reports it: both ask here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg

from detent.store.invariants.postgres_definitions import lifecycle_checks
from detent.store.invariants.schema_checks import constraints_query, guards_query
from detent.store.postgres.driver.connection import Connection
from detent.store.postgres.installed_parts import functions, guard_functions, triggers, views

__all__ = [
    "Checks",
    "Guards",
    "changed_views",
    "differences",
    "different_checks",
    "different_functions",
    "different_guards",
    "different_views",
]

_TRIES = 3
_FUNCTIONS = "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = to_regnamespace('detent')"
_VIEWS = "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('detent') AND relkind = 'v'"
_OBSOLETE = """
SELECT t.tgname, c.relname FROM pg_trigger t
  JOIN pg_class c ON c.oid = t.tgrelid AND c.relnamespace = to_regnamespace('detent')
  JOIN pg_proc p ON p.oid = t.tgfoid AND p.pronamespace = to_regnamespace('detent')
 WHERE NOT t.tgisinternal AND t.tgname <> ALL (%s::text[]) AND p.proname <> 'database_closed'
 ORDER BY t.tgname
"""
_STORED_VIEWS = """
SELECT c.relname, md5(concat_ws(' ', r.ev_class, r.ev_action::text, c.reloptions::text))
  FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
 WHERE c.relnamespace = to_regnamespace('detent') AND c.relkind = 'v'
"""
# What is missing is found by name. A login that may not read a table cannot compare the views on it.
_INCOMPARABLE = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.UndefinedFunction,
    psycopg.errors.InsufficientPrivilege,
)
_SAME: set[tuple[str, str]] = set()
"""Views that are those of this release, with the digest of their stored form, which names the tables by number."""

_NOT_VALID = "SELECT conname FROM pg_constraint WHERE connamespace = to_regnamespace('detent') AND NOT convalidated"


@dataclass(frozen=True, slots=True)
class Checks:
    """CHECKs that depend on a lifecycle: those with another condition, and those that were not validated yet."""

    changed: tuple[str, ...]
    not_valid: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Guards:
    """Functions of triggers that differ, triggers that differ, and triggers (with tables) that this release has not."""

    functions: tuple[str, ...]
    triggers: tuple[str, ...]
    obsolete: tuple[tuple[str, str], ...]


def differences(connection: Connection) -> tuple[str, ...]:
    """Compare a database that has all migrations with this release; return what differs: `function job_claim_v2`."""
    checks, guards = different_checks(connection), different_guards(connection)
    return (
        *(f"check {name}" for name in dict.fromkeys((*checks.changed, *checks.not_valid))),
        *(f"function {name}" for name in (*guards.functions, *different_functions(connection))),
        *(f"trigger {name}" for name in (*guards.triggers, *(name for name, _ in guards.obsolete))),
        *(f"view {name}" for name in different_views(connection)),
    )


def different_checks(connection: Connection) -> Checks:
    """Compare the CHECKs that depend on a lifecycle."""
    known = lifecycle_checks()
    wrong = {name: detail for _, name, detail in connection.execute(constraints_query(known).encode()).fetchall()}
    unenforced = {name for name, detail in wrong.items() if detail.startswith("it is not enforced")}
    not_valid = unenforced & {name for (name,) in connection.execute(_NOT_VALID).fetchall()}
    return Checks(
        changed=tuple(name for name in known if name in wrong.keys() - not_valid),
        not_valid=tuple(name for name in known if name in not_valid),
    )


def different_guards(connection: Connection) -> Guards:
    """Compare the triggers and the functions that they call."""
    rows = connection.execute(guards_query().encode()).fetchall()
    wrong = {(kind, name) for kind, name, _ in rows}
    obsolete = connection.execute(_OBSOLETE, (list(triggers()),)).fetchall()
    return Guards(
        functions=tuple(name for name in guard_functions() if ("function", name) in wrong),
        triggers=tuple(name for name in triggers() if ("trigger", name) in wrong),
        obsolete=tuple((name, table) for name, table in obsolete),
    )


def different_functions(connection: Connection) -> tuple[str, ...]:
    """Compare the bodies of the verbs and of what they share."""
    bodies: dict[str, set[str]] = {}
    for name, source in connection.execute(_FUNCTIONS).fetchall():
        bodies.setdefault(name, set()).add(source)
    return tuple(name for name, one in functions().items() if one.body not in bodies.get(name, ()))


def different_views(connection: Connection) -> tuple[str, ...]:
    """Compare the views."""
    there = {name for (name,) in connection.execute(_VIEWS).fetchall()}
    changed = set(changed_views(connection))
    return tuple(name for name in views() if name not in there or name in changed)


def changed_views(connection: Connection) -> Iterator[str]:
    """Yield the views that are there and are not those of this release.

    PostgreSQL prints a view in words of its own, which change with its version. So the plan of the view is compared
    with the plan of the query in its file. Statistics may change between the two, so a difference is looked at again.
    A view that was found to be the same is not planned again by this process unless its stored form has changed.
    """
    stored: dict[str, str] = dict(connection.execute(_STORED_VIEWS).fetchall())
    for name, view in views().items():
        if (name, stored.get(name, "")) in _SAME:
            continue
        try:
            with connection.transaction():
                same = any(
                    _plan(connection, f"detent.{name}") == _plan(connection, f"({view.query}) {name}")
                    for _ in range(_TRIES)
                )
        except _INCOMPARABLE:
            continue
        if not same:
            yield name
        elif name in stored:
            _SAME.add((name, stored[name]))


def _plan(connection: Connection, source: str) -> list[Any]:
    return connection.execute(f"EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM {source}".encode()).fetchall()
