"""The schema in a SQLite file: created, checked, brought up to date."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Mapping

from detent.model.clock import Clock, to_micros
from detent.store.installed_release import fingerprint, is_newer, refuse_if_newer, this_release
from detent.store.migrate import (
    Applied,
    Migration,
    check,
    check_wording,
    is_complete,
    load,
    names,
    pending,
    refuse_newer,
)
from detent.store.sqlite import installed_parts

__all__ = ["KNOWN", "applied_steps", "differing_parts", "look", "migrate", "refuse", "script"]

log = logging.getLogger("detent.store")

KNOWN = load("sqlite")

_HAS_RECORD = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'detent_migration'"
_APPLIED = "SELECT version, checksum, oldest_code FROM detent_migration"
_TAKEN = "INSERT INTO detent_migration (version, name, checksum, oldest_code, applied_at) VALUES (?, ?, ?, ?, ?)"
_NOW_BY_HAND = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"


def applied_steps(connection: sqlite3.Connection) -> dict[int, Applied]:
    """Return the migrations that this file has taken; none if Detent was never here."""
    ((there,),) = connection.execute(_HAS_RECORD).fetchall()
    if not there:
        return {}
    return {row[0]: Applied(*row) for row in connection.execute(_APPLIED).fetchall()}


def look(connection: sqlite3.Connection, database: str, applied: Mapping[int, Applied]) -> None:
    """Raise an error unless this release may work with the file. Log a warning if an older release, or another build of
    this one, has installed its triggers and views."""
    check(database, KNOWN, applied)
    found = installed_parts.installed(connection)
    is_other = found is None or found.fingerprint != fingerprint("sqlite")
    if is_other and is_complete(KNOWN, applied) and not is_newer(found):
        log.warning("the triggers and views in %s differ from those of this Detent: run `detent migrate`", database)


def differing_parts(connection: sqlite3.Connection | None, applied: Mapping[int, Applied]) -> tuple[str, ...]:
    """Return the installed parts that differ from this release; none if a newer release has installed them, or if
    migrations are missing."""
    if connection is None or not is_complete(KNOWN, applied) or is_newer(installed_parts.installed(connection)):
        return ()
    return installed_parts.differences(connection)


def migrate(
    connection: sqlite3.Connection, clock: Clock, database: str, watch: Callable[[str], None] = lambda _: None
) -> list[str]:
    """Apply the missing migrations and install the parts of this release inside the caller's write transaction; return
    the names of what was applied. What this release may not migrate is raised before anything is done."""
    applied = applied_steps(connection)
    refuse(connection, database, applied)
    done: list[str] = []
    for step in pending(KNOWN, applied):
        for statement in installed_parts.statements(step.sql):
            connection.execute(statement)
        at = to_micros(clock.now(), field="now")
        connection.execute(_TAKEN, (step.version, step.name, step.checksum, step.oldest_code, at))
        done += names([step])
    if applied:
        done += installed_parts.install(connection, clock, database)
    else:
        installed_parts.create(connection, clock)
    for name in done:
        watch(name)
    return done


def script(connection: sqlite3.Connection | None, database: str, applied: Mapping[int, Applied]) -> str:
    """Return what `migrate` would do, as text; empty if there is nothing to do."""
    if connection is not None:
        refuse(connection, database, applied)
    steps = pending(KNOWN, applied)
    parts = [step.sql + _taken_by_hand(step) for step in steps]
    if not applied:
        parts += [installed_parts.parts_sql(), _marked_by_hand()]
    elif connection is not None and (changes := installed_parts.changes_by_hand(connection)):
        parts += [*changes, _marked_by_hand()]
    return "\n".join(["BEGIN IMMEDIATE;", *parts, "COMMIT;", ""]) if parts else ""


def refuse(connection: sqlite3.Connection, database: str, applied: Mapping[int, Applied]) -> None:
    """Raise an error if this release may not migrate the file."""
    check_wording(database, KNOWN, applied)
    refuse_newer(database, KNOWN, applied)
    refuse_if_newer(database, installed_parts.installed(connection))


def _taken_by_hand(step: Migration) -> str:
    values = f"{step.version}, '{step.name}', '{step.checksum}', {step.oldest_code}, {_NOW_BY_HAND}"
    return f"INSERT INTO detent_migration (version, name, checksum, oldest_code, applied_at) VALUES ({values});\n"


def _marked_by_hand() -> str:
    values = f"1, '{this_release()}', '{fingerprint('sqlite')}', 1, {_NOW_BY_HAND}"
    return f"INSERT OR REPLACE INTO detent_installed (one, release, fingerprint, complete, at) VALUES ({values});"
