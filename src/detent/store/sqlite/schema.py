"""The schema in a SQLite file: created, checked, brought up to date."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence

from detent.errors import SchemaTooOld
from detent.model.clock import Clock, to_micros
from detent.store.migrate import Applied, Migration, check, load, pending

__all__ = ["KNOWN", "applied_steps", "apply_steps", "script", "statements"]

KNOWN = load("sqlite")

_HAS_RECORD = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'detent_migration'"
_APPLIED = "SELECT version, checksum, oldest_code FROM detent_migration"
_TAKEN = "INSERT INTO detent_migration (version, name, checksum, oldest_code, applied_at) VALUES (?, ?, ?, ?, ?)"
_NOW_BY_HAND = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"


def applied_steps(connection: sqlite3.Connection) -> dict[int, Applied]:
    """The steps this database has taken; none where Detent was never here."""
    ((there,),) = connection.execute(_HAS_RECORD).fetchall()
    if not there:
        return {}
    return {row[0]: Applied(*row) for row in connection.execute(_APPLIED).fetchall()}


def apply_steps(
    connection: sqlite3.Connection, clock: Clock, database: str, applied: Mapping[int, Applied]
) -> list[Migration]:
    """Take the missing steps inside the caller's transaction; those taken. `SchemaTooNew` before anything is done."""
    try:
        check(database, KNOWN, applied)
    except SchemaTooOld:
        missing: Sequence[Migration] = pending(KNOWN, applied)
    else:
        return []
    for step in missing:
        for statement in statements(step.sql):
            connection.execute(statement)
        at = to_micros(clock.now(), field="now")
        connection.execute(_TAKEN, (step.version, step.name, step.checksum, step.oldest_code, at))
    return list(missing)


def script(applied: Mapping[int, Applied]) -> str:
    """The missing steps as text: what `apply_steps` would do."""
    parts = [step.sql + _taken_by_hand(step) for step in pending(KNOWN, applied)]
    return "\n".join(["BEGIN IMMEDIATE;", *parts, "COMMIT;", ""]) if parts else ""


def _taken_by_hand(step: Migration) -> str:
    values = f"{step.version}, '{step.name}', '{step.checksum}', {step.oldest_code}, {_NOW_BY_HAND}"
    return f"INSERT INTO detent_migration (version, name, checksum, oldest_code, applied_at) VALUES ({values});\n"


def statements(script: str) -> Iterator[str]:
    """A script, statement by statement; SQLite itself says where one ends, so the bodies of triggers stay whole."""
    gathered = ""
    for line in script.splitlines(keepends=True):
        gathered += line
        if sqlite3.complete_statement(gathered):
            yield gathered
            gathered = ""
