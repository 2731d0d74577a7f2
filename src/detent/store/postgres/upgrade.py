"""Bringing a PostgreSQL database up to date while jobs run.

Every step is a transaction of its own. It waits for a lock only for a moment and is tried again, because other
statements queue up behind a lock that waits. No step reads a whole table under a lock that keeps writers out: a CHECK
is added as NOT VALID and validated afterwards. Only what differs is replaced, so an upgrade that was interrupted is
continued by the next `detent migrate`, and a second migrator finds nothing to do.

The order lets old and new workers go on side by side: first what allows more (CHECKs, guards, triggers), then views and
the verbs that use them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import psycopg

from detent.errors import DatabaseBusy, DatabaseError
from detent.model.clock import Clock
from detent.store.invariants.postgres_definitions import lifecycle_checks
from detent.store.migrate import Migration, names, pending
from detent.store.postgres import schema
from detent.store.postgres.create import differing_parts, grants, mark, taken
from detent.store.postgres.differences import different_checks, different_functions, different_guards, different_views
from detent.store.postgres.driver.connection import Connection
from detent.store.postgres.driver.failures import translating
from detent.store.postgres.installed_parts import (
    functions,
    functions_of_views,
    guard_functions,
    triggers,
    views,
)

__all__ = ["LOCK_MILLISECONDS_MAX", "TRIES_MAX", "upgrade"]

LOCK_MILLISECONDS_MAX = 300
"""Milliseconds for which a step waits for a lock, and other statements behind it."""
TRIES_MAX = 100
"""How often a step is tried if it does not get its lock."""
_INDEX = re.compile(r"CREATE (?:UNIQUE )?INDEX CONCURRENTLY (?:IF NOT EXISTS )?(\w+) ")
_INVALID = "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND NOT indisvalid"
_PAUSE_FIRST = 0.05
_PAUSE_LONGEST = 2.0


def upgrade(connection: Connection, database: str, clock: Clock, watch: Callable[[str], None]) -> list[str]:
    """Apply missing migrations and replace the parts that differ from this release; return their names.

    `DatabaseBusy` if a lock was not to be had: what was done until then stays, and the next call continues.
    """
    return _Upgrade(connection, database, clock, watch).run()


class _Upgrade:
    def __init__(self, connection: Connection, database: str, clock: Clock, watch: Callable[[str], None]) -> None:
        self._connection = connection
        self._database = database
        self._clock = clock
        self._watch = watch
        self._done: list[str] = []

    def run(self) -> list[str]:
        with translating(self._database):
            applied = schema.applied_steps(self._connection, self._database)
            schema.refuse(self._connection, self._database, applied)
            steps = pending(schema.KNOWN, applied)
            differs = bool(steps) or bool(differing_parts(self._connection, applied))
            if differs:
                self._replace(steps)
            self._step(None, lambda: grants(self._connection), lambda: mark(self._connection, complete=True))
            if differs and not self._done:
                self._told("function declarations")
        return self._done

    def _replace(self, steps: Sequence[Migration]) -> None:
        # From here on an older release refuses to migrate, also while this one is not done.
        self._step(None, lambda: mark(self._connection, complete=False))
        for step in steps:
            self._migrate(step)
        self._checks()
        self._guards()
        self._views_and_functions()

    def _migrate(self, step: Migration) -> None:
        (name,) = names([step])
        if step.is_one_by_one:
            for statement in statements(step.sql):
                self._alone(statement)

        def work() -> None:
            if step.version in schema.applied_steps(self._connection, self._database):
                return
            if not step.is_one_by_one:
                self._execute(step.sql)
            taken(self._connection, step)

        self._step(name, work)

    def _checks(self) -> None:
        known = lifecycle_checks()
        for name in different_checks(self._connection).changed:
            table, ddl = f"detent.{known[name].table}", known[name].ddl.rstrip(";")
            self._step(None, f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}", f"{ddl} NOT VALID")
        for name in different_checks(self._connection).not_valid:
            self._step(f"check {name}", f"ALTER TABLE detent.{known[name].table} VALIDATE CONSTRAINT {name}")

    def _guards(self) -> None:
        found = different_guards(self._connection)
        self._step(None, *(function.ddl for function in guard_functions().values()))
        for name in found.functions:
            self._told(f"function {name}")
        for name in found.triggers:
            self._step(f"trigger {name}", triggers()[name].ddl)
        for name, table in found.obsolete:
            self._step(f"trigger {name}", f"DROP TRIGGER IF EXISTS {name} ON detent.{table}")

    def _views_and_functions(self) -> None:
        changed = different_functions(self._connection)
        self._step(None, *(function.ddl for function in functions_of_views().values()))
        for name in different_views(self._connection):
            self._step(f"view {name}", partial(self._replace_view, name))
        self._step(None, "SET LOCAL check_function_bodies = off", *(one.ddl for one in functions().values()))
        for name in changed:
            self._told(f"function {name}")

    def _replace_view(self, name: str) -> None:
        try:
            with self._connection.transaction():
                self._execute(views()[name].ddl)
        except psycopg.errors.InvalidTableDefinition:
            # It has other columns. The views that read it go with it, and are created again after it.
            self._execute(f"DROP VIEW detent.{name} CASCADE")
            self._execute(views()[name].ddl)
            for later in different_views(self._connection):
                self._execute(views()[later].ddl)

    # -- one step ----------------------------------------------------------------------------------------------

    def _step(self, name: str | None, *work: str | Callable[[], None]) -> None:
        """Run statements in a transaction of their own, after a look whether a newer release came meanwhile."""

        def once() -> None:
            with self._connection.transaction():
                self._execute(f"SET LOCAL lock_timeout = '{LOCK_MILLISECONDS_MAX}ms'")
                self._execute(schema.LOCK)
                applied = schema.applied_steps(self._connection, self._database)
                schema.refuse(self._connection, self._database, applied)
                for part in work:
                    if callable(part):
                        part()
                    else:
                        self._execute(part)

        self._again(name or "a step", once)
        if name is not None:
            self._told(name)

    def _alone(self, statement: str) -> None:
        """Run one statement of a migration; if it is CONCURRENTLY, outside a transaction."""
        if "CONCURRENTLY" not in statement:
            self._step(None, statement)
            return
        made = _INDEX.match(statement)
        # An index whose creation was interrupted is never used, and IF NOT EXISTS would keep it.
        if made and self._connection.execute(_INVALID, (f"detent.{made[1]}",)).fetchone() is not None:
            drop = f"DROP INDEX CONCURRENTLY IF EXISTS detent.{made[1]}"
            self._again("an index", lambda: self._execute(drop))
        self._again("an index", lambda: self._execute(statement))

    def _again(self, name: str, work: Callable[[], None]) -> None:
        pause = _PAUSE_FIRST
        for number in range(1, TRIES_MAX + 1):
            try:
                work()
            except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
                if number == TRIES_MAX:
                    found = f"no lock for {name} in {TRIES_MAX} tries: {error}"
                    raise DatabaseBusy(self._database, f"{found}; `detent migrate` continues") from error
            except psycopg.errors.InsufficientPrivilege as error:
                found = f"only the owner of its schema detent may migrate it: {error}"
                raise DatabaseError(self._database, found) from error
            else:
                return
            self._clock.sleep(pause)
            pause = min(2 * pause, _PAUSE_LONGEST)

    def _execute(self, statement: str) -> None:
        self._connection.execute(statement.encode())

    def _told(self, name: str) -> None:
        self._done.append(name)
        self._watch(name)


def statements(script: str) -> Iterator[str]:
    """Yield the statements of a migration that runs one by one; it has no functions, so each ends with its line."""
    gathered = ""
    for line in script.splitlines(keepends=True):
        if line.lstrip().startswith("--"):
            continue
        gathered += line
        if line.rstrip().endswith(";"):
            yield gathered.strip()
            gathered = ""
