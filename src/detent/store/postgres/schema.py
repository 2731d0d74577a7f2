"""The schema in a PostgreSQL database: created, checked, brought up to date."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import psycopg

from detent.errors import NotADatabase, SchemaMissing
from detent.store.installed import Installed, is_newer, refuse_if_newer, this_release
from detent.store.invariants.expected import lifecycle_checks
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
from detent.store.postgres.differences import differences, different_checks
from detent.store.postgres.driver.failures import translating
from detent.store.postgres.driver.pool import Connection
from detent.store.postgres.facade import facade, is_ours
from detent.store.postgres.installed import (
    fingerprint,
    functions,
    functions_of_views,
    guard_functions,
    triggers,
    views,
)
from detent.store.postgres.roles import ARE_THERE, roles_sql

__all__ = [
    "KNOWN",
    "LOCK",
    "applied_steps",
    "create",
    "differing_parts",
    "grants",
    "installed",
    "look",
    "mark",
    "refuse",
    "script",
    "taken",
]

log = logging.getLogger("detent.store")

KNOWN = load("postgres")
VERSION_MIN = 15

LOCK = "SELECT pg_advisory_xact_lock(7310868735422392932)"
_THERE = """
SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'detent'),
       EXISTS (SELECT 1 FROM pg_class WHERE relname = 'migration' AND relnamespace = to_regnamespace('detent')),
       EXISTS (SELECT 1 FROM pg_class WHERE relkind = 'r' AND relnamespace = to_regnamespace('detent'))
"""
_TAKEN = "SELECT version, checksum, oldest_code FROM detent.migrations_v1()"
_HAS_INSTALLED = "SELECT to_regprocedure('detent.installed_v1()') IS NOT NULL"
_INSTALLED = "SELECT release, fingerprint, complete FROM detent.installed_v1()"
_ANY_ORDER = "SET LOCAL check_function_bodies = off"
_NOT_FOR_ALL = "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA detent FROM PUBLIC"


def applied_steps(connection: Connection, database: str) -> dict[int, Applied]:
    """Return the migrations that this database has taken; none if Detent was never here. `NotADatabase` if the schema
    `detent` belongs to something else, or if the server is too old."""
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


def installed(connection: Connection) -> Installed | None:
    """Return which release has installed its parts; None if none has."""
    if connection.execute(_HAS_INSTALLED).fetchone() != (True,):
        return None
    row = connection.execute(_INSTALLED).fetchone()
    return None if row is None else Installed(*row)


def look(connection: Connection, database: str) -> bool:
    """Return whether the schema is there; raise an error unless this release may work with it. Log a warning if an
    older release, or another build of this one, has installed its functions: they have the same names but may
    differ."""
    applied = applied_steps(connection, database)
    if applied:
        check(database, KNOWN, applied)
        with translating(database):
            found = installed(connection)
        is_other = found != Installed(this_release(), fingerprint(), complete=True)
        if is_other and is_complete(KNOWN, applied) and not is_newer(found):
            log.warning("the functions in %s differ from those of this Detent: run `detent migrate`", database)
    return bool(applied)


def refuse(connection: Connection, database: str, applied: Mapping[int, Applied]) -> None:
    """Raise an error if this release may not migrate the database."""
    check_wording(database, KNOWN, applied)
    refuse_newer(database, KNOWN, applied)
    if applied:
        refuse_if_newer(database, installed(connection))


def differing_parts(connection: Connection, applied: Mapping[int, Applied]) -> tuple[str, ...]:
    """Return the installed parts that differ from this release (`function job_claim_v2`); none if a newer release has
    installed them, or if migrations are missing. `declarations` if they do the same and are declared differently."""
    if not is_complete(KNOWN, applied):
        return ()
    found = installed(connection)
    if is_newer(found):
        return ()
    return differences(connection) or (
        () if found == Installed(this_release(), fingerprint(), complete=True) else ("function declarations",)
    )


def create(connection: Connection, database: str, watch: Callable[[str], None]) -> list[str]:
    """Create the schema in a database that has none, in one transaction; return the names of what was applied, nothing
    if another process was faster. `SchemaMissing` if this login may not."""
    with translating(database), connection.transaction():
        connection.execute(LOCK)
        applied = applied_steps(connection, database)
        if applied:
            return []
        try:
            for statement in _everything():
                connection.execute(statement.encode())
            grants(connection)
            mark(connection, complete=True)
            for step in KNOWN:
                taken(connection, step)
        except psycopg.errors.InsufficientPrivilege as error:
            raise SchemaMissing(database, str(error)) from error
    for name in names(KNOWN):
        watch(name)
    return list(names(KNOWN))


def script(connection: Connection, database: str, applied: Mapping[int, Applied]) -> str:
    """Return the migrations that are missing and all parts of this release as one script, in one transaction; empty if
    the database has them. `migrate` itself changes a database in small steps; this is for a person to read, or to run
    while nothing else runs."""
    refuse(connection, database, applied)
    steps = pending(KNOWN, applied)
    if not steps and not differing_parts(connection, applied):
        return ""
    checks = [] if not applied else _checks_again(connection)
    lines = ["BEGIN;", f"{LOCK};", *(f"{statement};" for statement in _everything(steps)), *checks]
    lines += [f"{statement};" for statement in (*_granted(connection), _mark_sql(complete=True))]
    return "\n".join([*lines, *(f"{_taken_sql(step)};" for step in steps), "COMMIT;", ""])


def grants(connection: Connection) -> None:
    """Install the schema `ops`, and say which roles may call the functions, if roles were made."""
    for statement in _granted(connection):
        connection.execute(statement.encode())


def mark(connection: Connection, *, complete: bool) -> None:
    """Record that this release has installed its parts, or has begun to."""
    connection.execute(_mark_sql(complete=complete).encode())


def taken(connection: Connection, step: Migration) -> None:
    """Record that the database has taken a migration."""
    connection.execute(_taken_sql(step).encode())


def _everything(steps: tuple[Migration, ...] = KNOWN) -> list[str]:
    # In a transaction, and in a new database there is nothing to be concurrent with.
    parts = [*(step.sql.replace(" CONCURRENTLY ", " ") for step in steps), _ANY_ORDER]
    parts += [function.ddl for function in functions_of_views().values()]
    parts += [view.ddl for view in views().values()]
    parts += [function.ddl for function in (*functions().values(), *guard_functions().values())]
    parts += [trigger.ddl for trigger in triggers().values()]
    return [part.rstrip().rstrip(";") for part in parts]


def _checks_again(connection: Connection) -> list[str]:
    found, known = different_checks(connection), lifecycle_checks()
    changed = [
        f"ALTER TABLE detent.{known[name].table} DROP CONSTRAINT IF EXISTS {name}; {known[name].ddl}"
        for name in found.changed
    ]
    return changed + [f"ALTER TABLE detent.{known[name].table} VALIDATE CONSTRAINT {name};" for name in found.not_valid]


def _granted(connection: Connection) -> list[str]:
    parts = [_NOT_FOR_ALL]
    if is_ours(connection):
        parts += facade()
    if connection.execute(ARE_THERE).fetchone() == (True,):
        parts.append(roles_sql())
    return [part.rstrip().rstrip(";") for part in parts]


def _mark_sql(*, complete: bool) -> str:
    values = f"true, '{this_release()}', '{fingerprint()}', {str(complete).lower()}, detent.clock()"
    return (
        f"INSERT INTO detent.installed (one, release, fingerprint, complete, at) VALUES ({values}) ON CONFLICT (one) "
        "DO UPDATE SET release = excluded.release, fingerprint = excluded.fingerprint, complete = excluded.complete, "
        "at = excluded.at"
    )


def _taken_sql(step: Migration) -> str:
    values = f"{step.version}, '{step.name}', '{step.checksum}', {step.oldest_code}, detent.clock()"
    return f"INSERT INTO detent.migration (version, name, checksum, oldest_code, applied_at) VALUES ({values})"
