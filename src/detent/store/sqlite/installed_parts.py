"""What a SQLite file of this release contains, and how to bring a file to that: triggers, views and state lists.

SQLite keeps the text of its schema. So the expected schema is made once in memory, and texts are compared. Everything
here changes only the schema, never a row: it takes a moment, however large the file is.
"""

from __future__ import annotations

import functools
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing

from detent.errors import DatabaseError
from detent.model.clock import Clock, to_micros
from detent.store.installed_release import Installed, fingerprint, this_release
from detent.store.lifecycle_sql import filled, literal
from detent.store.migrate import load
from detent.store.sql_files import closing_parenthesis, parts

__all__ = [
    "changes_by_hand",
    "create",
    "differences",
    "expected_schema",
    "install",
    "installed",
    "parts_sql",
    "statements",
]

_SCHEMA = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name"
_HAS_TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'detent_installed'"
_CHECK = re.compile(r"\bCONSTRAINT (?P<name>\w+) CHECK \(")
_MARK = """
INSERT INTO detent_installed (one, release, fingerprint, complete, at) VALUES (1, ?, ?, 1, ?)
ON CONFLICT (one) DO UPDATE SET release = excluded.release, fingerprint = excluded.fingerprint, complete = 1,
  at = excluded.at
 WHERE (release, fingerprint, complete) <> (excluded.release, excluded.fingerprint, 1)
"""
_TRIGGERS = """
SELECT name, tbl_name FROM sqlite_master
 WHERE type = 'trigger' AND tbl_name LIKE 'detent!_%' ESCAPE '!' AND name LIKE 'detent!_%' ESCAPE '!'
   AND name NOT LIKE 'detent!_closed!_%' ESCAPE '!'
 ORDER BY name
"""
"""Those that this release or another one has installed. What closes a file that moves is not among them."""


def parts_sql() -> str:
    """Return the statements that create all views and triggers."""
    return filled("\n".join([*parts("sqlite", "views"), *parts("sqlite", "triggers")]), "sqlite")


@functools.cache
def _expected(migrations: str, installed_parts: str) -> Mapping[tuple[str, str], str]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(migrations)
        connection.executescript(installed_parts)
        return {(kind, name): text for kind, name, text in connection.execute(_SCHEMA)}


def expected_schema() -> Mapping[tuple[str, str], str]:
    """Return the text that SQLite keeps for every table, index, trigger and view of this release, by (type, name)."""
    return _expected(_migrations_sql(), parts_sql())


def _migrations_sql() -> str:
    return "\n".join(migration.sql for migration in load("sqlite"))


def installed(connection: sqlite3.Connection) -> Installed | None:
    """Return which release has installed its parts in a file; None if none has."""
    if connection.execute(_HAS_TABLE).fetchone() is None:
        return None
    row = connection.execute("SELECT release, fingerprint, complete FROM detent_installed").fetchone()
    return None if row is None else Installed(row[0], row[1], bool(row[2]))


def differences(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return what differs from this release, in a file that has all its migrations: `trigger detent_job_guard`."""
    return tuple(f"{kind} {name}" for kind, name in _different(connection))


def create(connection: sqlite3.Connection, clock: Clock) -> None:
    """Create all views and triggers in a new file, inside the caller's write transaction."""
    for statement in statements(parts_sql()):
        connection.execute(statement)
    _mark(connection, clock)


def install(connection: sqlite3.Connection, clock: Clock, database: str) -> tuple[str, ...]:
    """Replace what differs, inside the caller's write transaction, and return what that was."""
    replaced = []
    for kind, name in _different(connection):
        try:
            for statement in _replacement(connection, kind, name):
                connection.execute(statement)
        except sqlite3.DatabaseError as error:
            if kind != "check":
                raise
            found = f"this build of SQLite does not allow the CHECK {name} to be replaced: {error}"
            raise DatabaseError(database, found) from error
        replaced.append(f"{kind} {name}")
    if replaced or installed(connection) != Installed(this_release(), fingerprint("sqlite"), complete=True):
        _mark(connection, clock)
    return tuple(replaced)


def _mark(connection: sqlite3.Connection, clock: Clock) -> None:
    connection.execute(_MARK, (this_release(), fingerprint("sqlite"), to_micros(clock.now(), field="now")))


def changes_by_hand(connection: sqlite3.Connection) -> list[str]:
    """Return the statements that `install` would run."""
    return [
        f"{statement};" for kind, name in _different(connection) for statement in _replacement(connection, kind, name)
    ]


def _different(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return (kind, name) of everything to replace, in the order in which that works: CHECKs whose condition differs,
    then views, then triggers that differ or that this release no longer has."""
    expected = expected_schema()
    found = {(kind, name): text for kind, name, text in connection.execute(_SCHEMA).fetchall()}
    checks, views, triggers = [], [], []
    for (kind, name), text in expected.items():
        if kind == "table" and found.get((kind, name), text) != text:
            there = _checks(found[kind, name])
            for check, condition in _checks(text).items():
                if there.get(check, condition) != condition:
                    checks.append(("check", f"{name}.{check}"))
        elif kind == "view" and found.get((kind, name)) != text:
            views.append((kind, name))
        elif kind == "trigger" and found.get((kind, name)) != text:
            triggers.append((kind, name))
    for name, table in connection.execute(_TRIGGERS).fetchall():
        if ("trigger", name) not in expected or ("view", table) in views:
            # Dropping a view drops its triggers.
            triggers.append(("trigger", name))
    return [*checks, *views, *dict.fromkeys(triggers)]


def _replacement(connection: sqlite3.Connection, kind: str, name: str) -> list[str]:
    if kind == "check":
        return _check_replacement(connection, *name.split("."))
    drop = f"DROP {kind.upper()} IF EXISTS {name}"
    expected = expected_schema()
    return [drop, expected[kind, name]] if (kind, name) in expected else [drop]


def _check_replacement(connection: sqlite3.Connection, table: str, check: str) -> list[str]:
    """Return the statements that replace one CHECK in the text of its table.

    SQLite documents this for changes that do not affect what is stored: https://www.sqlite.org/lang_altertable.html
    Existing rows are not checked; `detent verify` does that.
    """
    ((old,),) = connection.execute(
        "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)
    ).fetchall()
    match = re.search(rf"\bCONSTRAINT {check} CHECK \(", old)
    assert match is not None
    condition = _checks(expected_schema()["table", table])[check]
    new = old[: match.end()] + condition + old[closing_parenthesis(old, match.end()) :]
    ((version,),) = connection.execute("PRAGMA schema_version").fetchall()
    return [
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_master SET sql = {literal(new)} WHERE type = 'table' AND name = {literal(table)}",
        f"PRAGMA schema_version = {version + 1}",
        "PRAGMA writable_schema = RESET",
        f"SELECT 1 FROM {table} LIMIT 0",
    ]


def _checks(table: str) -> dict[str, str]:
    return {
        match["name"]: table[match.end() : closing_parenthesis(table, match.end())] for match in _CHECK.finditer(table)
    }


def statements(script: str) -> Iterator[str]:
    """Yield the statements of a script; SQLite itself says where one ends, so the bodies of triggers stay whole."""
    gathered = ""
    for line in script.splitlines(keepends=True):
        gathered += line
        if sqlite3.complete_statement(gathered):
            yield gathered
            gathered = ""
