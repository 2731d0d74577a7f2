"""The schema that a PostgreSQL database has, and whether this release may work with it."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from detent.errors import NotADatabase
from detent.store.installed_release import Installed, fingerprint, is_newer, refuse_if_newer, this_release
from detent.store.migrate import Applied, check, check_wording, is_complete, load, refuse_newer
from detent.store.postgres.driver.connection import Connection
from detent.store.postgres.driver.failures import translating

__all__ = ["KNOWN", "LOCK", "applied_steps", "installed", "look", "refuse"]

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
_HAS_INSTALLED = """
SELECT EXISTS (SELECT 1 FROM pg_proc WHERE oid = to_regprocedure('detent.installed_v1()')),
       EXISTS (SELECT 1 FROM pg_class WHERE relname = 'installed' AND relnamespace = to_regnamespace('detent'))
"""
_BY_FUNCTION = "SELECT release, fingerprint, complete FROM detent.installed_v1()"
_BY_TABLE = "SELECT release, fingerprint, complete FROM detent.installed"


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
    there = connection.execute(_HAS_INSTALLED).fetchone()
    assert there is not None
    function, table = there
    if not table:
        return None
    # Roles may only call the function. The owner can read the table, also if the function was dropped.
    row = connection.execute(_BY_FUNCTION if function else _BY_TABLE).fetchone()
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
        is_other = found != Installed(this_release(), fingerprint("postgres"), complete=True)
        if is_other and is_complete(KNOWN, applied) and not is_newer(found):
            log.warning("the functions in %s differ from those of this Detent: run `detent migrate`", database)
    return bool(applied)


def refuse(connection: Connection, database: str, applied: Mapping[int, Applied]) -> None:
    """Raise an error if this release may not migrate the database."""
    check_wording(database, KNOWN, applied)
    refuse_newer(database, KNOWN, applied)
    if applied:
        refuse_if_newer(database, installed(connection))
