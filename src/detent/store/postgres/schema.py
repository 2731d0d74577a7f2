"""The record in a database: which steps it has taken, taking the missing ones, and the functions of this version."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import psycopg

from detent.errors import DatabaseError, NotADatabase, SchemaMissing
from detent.store.migrate import Applied, Migration, check, check_wording, load, pending
from detent.store.postgres.driver.failures import translating
from detent.store.postgres.driver.pool import Connection
from detent.store.postgres.facade import facade, is_ours
from detent.store.postgres.functions import MARK, differing, functions, is_newer, is_this, mark_sql
from detent.store.postgres.roles import ARE_THERE, roles_sql

__all__ = ["KNOWN", "applied_steps", "install", "look", "other_functions", "script"]

log = logging.getLogger("detent.store")

KNOWN = load("postgres")
VERSION_MIN = 15

_LOCK = "SELECT pg_advisory_xact_lock(7310868735422392932)"
_THERE = """
SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'detent'),
       EXISTS (SELECT 1 FROM pg_class WHERE relname = 'migration' AND relnamespace = to_regnamespace('detent')),
       EXISTS (SELECT 1 FROM pg_class WHERE relkind = 'r' AND relnamespace = to_regnamespace('detent'))
"""
_TAKEN = "SELECT version, checksum, oldest_code FROM detent.migrations_v1()"
_TAKE = """
INSERT INTO detent.migration (version, name, checksum, oldest_code, applied_at) VALUES (%s, %s, %s, %s, detent.clock())
"""
_NOT_FOR_ALL = "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA detent FROM PUBLIC"


def applied_steps(connection: Connection, database: str) -> dict[int, Applied]:
    """The steps this database has taken; none where it has no record yet. `NotADatabase` where the schema `detent`
    belongs to something else, or the server is too old."""
    version = connection.info.server_version // 10_000
    if version < VERSION_MIN:
        raise NotADatabase(database, f"PostgreSQL {version}, and Detent needs {VERSION_MIN} or later")
    with translating(database):
        there = connection.execute(_THERE).fetchone()
        assert there is not None
        _schema, ours, tables = there
        if not ours:
            if tables:
                raise NotADatabase(database, "its schema detent holds something else")
            return {}
        rows = connection.execute(_TAKEN).fetchall()
    return {version: Applied(version, checksum, oldest) for version, checksum, oldest in rows}


def look(connection: Connection, database: str) -> bool:
    """Whether the record is there, and fit for this version; what does not fit is raised. That the functions are those
    of another version is logged: they are called by the same names, but may not do the same."""
    applied = applied_steps(connection, database)
    if applied:
        check(database, KNOWN, applied)
        with translating(database):
            mark = _mark(connection)
        if _is_this(applied) and not is_this(mark) and not is_newer(mark):
            log.warning("the functions in %s differ from those of this Detent: run `detent migrate`", database)
    return bool(applied)


def _mark(connection: Connection) -> str | None:
    row = connection.execute(f"SELECT {MARK}".encode()).fetchone()
    return None if row is None else row[0]


def other_functions(connection: Connection, applied: Mapping[int, Applied]) -> tuple[str, ...]:
    """The functions in a database with this version's schema that are not this version's."""
    return differing(connection) if _is_this(applied) else ()


def _is_this(applied: Mapping[int, Applied]) -> bool:
    """Of another schema the functions are others, and fit it."""
    return max(applied, default=0) == KNOWN[-1].version


def install(connection: Connection, database: str) -> tuple[list[Migration], tuple[str, ...]]:
    """Take the missing steps and put the functions of this version in place, in one transaction; the steps that were
    taken, and the functions that were other ones where no step was.

    Whoever comes second waits and finds nothing to do. A newer schema is left alone. `SchemaMissing` where the record
    is missing and may not be created.
    """
    with translating(database), connection.transaction():
        connection.execute(_LOCK)
        applied = applied_steps(connection, database)
        check_wording(database, KNOWN, applied)
        missing = pending(KNOWN, applied)
        if applied and max(applied) > KNOWN[-1].version:
            check(database, KNOWN, applied)
            return [], ()
        if applied and not missing and is_newer(_mark(connection)):
            return [], ()  # A newer release has put its functions in place: they serve this one too.
        changed = other_functions(connection, applied)
        try:
            for step in missing:
                connection.execute(step.sql.encode())
            for _, text in functions():
                connection.execute(text.encode())
            for text in _last(connection):
                connection.execute(text.encode())
        except psycopg.errors.InsufficientPrivilege as error:
            if applied:
                raise DatabaseError(database, f"only the owner of its schema detent may migrate it: {error}") from error
            raise SchemaMissing(database, str(error)) from error
        for step in missing:
            connection.execute(_TAKE, (step.version, step.name, step.checksum, step.oldest_code))
    return list(missing), changed


def script(connection: Connection, applied: Mapping[int, Applied]) -> str:
    """The missing steps, and the functions of this version, as text: what `install` would do. Empty where the database
    has all of them."""
    steps = pending(KNOWN, applied)
    if not steps and not other_functions(connection, applied):
        return ""
    parts = [*(step.sql for step in steps), *(text for _, text in functions()), *_last(connection)]
    return "\n".join(["BEGIN;", f"{_LOCK};", *parts, *map(_taken_by_hand, steps), "COMMIT;", ""])


def _last(connection: Connection) -> list[str]:
    """What follows the functions: who may call them, where roles were made, and the mark of this version."""
    texts = [f"{_NOT_FOR_ALL};"]
    if is_ours(connection):
        texts += facade()
    if connection.execute(ARE_THERE).fetchone() == (True,):
        texts.append(roles_sql())
    return [*texts, f"{mark_sql()};"]


def _taken_by_hand(step: Migration) -> str:
    values = f"{step.version}, '{step.name}', '{step.checksum}', {step.oldest_code}, detent.clock()"
    return f"INSERT INTO detent.migration (version, name, checksum, oldest_code, applied_at) VALUES ({values});"
