"""Making the schema in a new PostgreSQL database, and what every upgrade ends with.

An existing database is changed by `upgrade`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import psycopg

from detent.errors import SchemaMissing
from detent.store.installed_release import Installed, fingerprint, is_newer, this_release
from detent.store.invariants.postgres_definitions import lifecycle_checks
from detent.store.migrate import Applied, Migration, is_complete, names, pending
from detent.store.ops.ops_schema import is_ours, ops_schema
from detent.store.postgres import schema
from detent.store.postgres.differences import differences, different_checks
from detent.store.postgres.driver.connection import Connection
from detent.store.postgres.driver.failures import translating
from detent.store.postgres.installed_parts import functions, functions_of_views, guard_functions, triggers, views
from detent.store.postgres.roles import ARE_THERE, roles_sql

__all__ = ["create", "differing_parts", "grants", "mark", "script", "taken"]

_ANY_ORDER = "SET LOCAL check_function_bodies = off"
_NOT_FOR_ALL = "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA detent FROM PUBLIC"


def differing_parts(connection: Connection, applied: Mapping[int, Applied]) -> tuple[str, ...]:
    """Return the installed parts that differ from this release (`function job_claim_v2`); none if a newer release has
    installed them, or if migrations are missing. `declarations` if they do the same and are declared differently."""
    if not is_complete(schema.KNOWN, applied):
        return ()
    found = schema.installed(connection)
    if is_newer(found):
        return ()
    return differences(connection) or (
        () if found == Installed(this_release(), fingerprint("postgres"), complete=True) else ("function declarations",)
    )


def create(connection: Connection, database: str, watch: Callable[[str], None]) -> list[str]:
    """Create the schema in a database that has none, in one transaction; return the names of what was applied, nothing
    if another process was faster. `SchemaMissing` if this login may not."""
    with translating(database), connection.transaction():
        connection.execute(schema.LOCK)
        applied = schema.applied_steps(connection, database)
        if applied:
            return []
        try:
            for statement in _everything(schema.KNOWN):
                connection.execute(statement.encode())
            grants(connection)
            mark(connection, complete=True)
            for step in schema.KNOWN:
                taken(connection, step)
        except psycopg.errors.InsufficientPrivilege as error:
            raise SchemaMissing(database, str(error)) from error
    for name in names(schema.KNOWN):
        watch(name)
    return list(names(schema.KNOWN))


def script(connection: Connection, database: str, applied: Mapping[int, Applied]) -> str:
    """Return the migrations that are missing and all parts of this release as one script, in one transaction; empty if
    the database has them. `migrate` itself changes a database in small steps; this is for a person to read, or to run
    while nothing else runs."""
    schema.refuse(connection, database, applied)
    steps = pending(schema.KNOWN, applied)
    if not steps and not differing_parts(connection, applied):
        return ""
    checks = [] if not applied else _checks_again(connection)
    lines = ["BEGIN;", f"{schema.LOCK};", *(f"{statement};" for statement in _everything(steps)), *checks]
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


def _everything(steps: tuple[Migration, ...]) -> list[str]:
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
        parts.append(ops_schema())
    if connection.execute(ARE_THERE).fetchone() == (True,):
        parts.append(roles_sql())
    return [part.rstrip().rstrip(";") for part in parts]


def _mark_sql(*, complete: bool) -> str:
    values = f"true, '{this_release()}', '{fingerprint('postgres')}', {str(complete).lower()}, detent.clock()"
    return (
        f"INSERT INTO detent.installed (one, release, fingerprint, complete, at) VALUES ({values}) ON CONFLICT (one) "
        "DO UPDATE SET release = excluded.release, fingerprint = excluded.fingerprint, complete = excluded.complete, "
        "at = excluded.at WHERE (installed.release, installed.fingerprint, installed.complete) IS DISTINCT FROM "
        "(excluded.release, excluded.fingerprint, excluded.complete)"
    )


def _taken_sql(step: Migration) -> str:
    values = f"{step.version}, '{step.name}', '{step.checksum}', {step.oldest_code}, detent.clock()"
    return f"INSERT INTO detent.migration (version, name, checksum, oldest_code, applied_at) VALUES ({values})"
