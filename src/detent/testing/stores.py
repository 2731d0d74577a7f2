"""Stores whose clock the test advances, and direct access to their tables.

    with turnable_store(url) as (store, clock):
        clock.advance(31)

On SQLite the clock is injected. On PostgreSQL the time is that of the database, so the test's database gets a
`detent.clock()` that reads a one-row table. `install_clock` creates it once, and copies of that database have it too.
`plain_connection` is an ordinary connection, as a user has it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from detent.model.clock import Clock, TurnableClock
from detent.model.records import Violation
from detent.store.contract import Store
from detent.store.invariants import Dialect, Invariant, load
from detent.store.open import open_store
from detent.store.sqlite.driver.database_file import path_from_url

__all__ = [
    "START",
    "Dumps",
    "StoreClock",
    "TableClock",
    "another_store",
    "deadlocks",
    "dump",
    "install_clock",
    "is_sqlite",
    "plain_connection",
    "row_invariants",
    "row_violations",
    "table",
    "turnable_store",
]

START = datetime(2026, 1, 1, tzinfo=UTC)
"""The time at which every test begins."""

LOCK_SECONDS_MAX = 60.0

_SQLITE_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) = 'detent_'"
_POSTGRES_TABLES = """
    SELECT 'detent.' || tablename FROM pg_tables WHERE schemaname = 'detent' AND tablename <> 'test_clock'
"""

_IS_TURNABLE = "SELECT 1 FROM pg_proc WHERE oid = to_regprocedure('detent.clock()') AND prosrc LIKE '%test_clock%'"

_OF_DEFINITIONS = {"constraints_are_in_place", "definitions_are_in_place", "guards_are_in_place", "storage_is_sound"}

Dump = dict[str, list[tuple[Any, ...]]]


class StoreClock(Clock, Protocol):
    """The clock of the database in a test: it stands still until it is advanced, and never goes back."""

    def advance(self, by: float | timedelta) -> datetime:
        """Advance the clock, and return the new time."""
        ...

    def set(self, to: datetime) -> None:
        """Advance the clock to that time. `InvalidInput` for an earlier one."""
        ...


@contextmanager
def turnable_store(url: str) -> Iterator[tuple[Store, StoreClock]]:
    """Open the store of `url` with its clock, which begins at `START`. Both are closed at the end."""
    if is_sqlite(url):
        turnable = TurnableClock(START)
        with closing(open_store(url, clock=turnable)) as store:
            store.ready()
            yield store, turnable
        return
    with closing(open_store(url)) as store:
        store.ready()
        with closing(plain_connection(url)) as connection:
            connection.autocommit = True
            yield store, TableClock(connection)


def another_store(url: str, clock: StoreClock | None = None) -> Store:
    """Return another store on a database that is ready, with its own connections, as a second process has.

    It shares the time of `clock`. Without a clock to share, on SQLite its time stays at `START`.
    """
    return open_store(url, clock=clock if isinstance(clock, TurnableClock) else TurnableClock(START))


def install_clock(url: str) -> None:
    """Let a PostgreSQL test database read its time from a table, beginning at `START`. The owner must call it."""
    with closing(plain_connection(url)) as connection:
        _install_clock(connection)
        connection.commit()


def _install_clock(connection: Any) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS detent.test_clock (at timestamptz NOT NULL)")
    connection.execute(
        "CREATE OR REPLACE FUNCTION detent.clock() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE "
        "AS $$ SELECT at FROM detent.test_clock $$"
    )
    connection.execute("DELETE FROM detent.test_clock")
    connection.execute("INSERT INTO detent.test_clock VALUES (%s)", (START,))


class TableClock:
    """A `TurnableClock` whose time is stored in the database, for all connections. Its own is in autocommit."""

    def __init__(self, connection: Any) -> None:
        self._clock = TurnableClock(START)
        self._connection = connection
        if self._connection.execute(_IS_TURNABLE).fetchone() is None:
            with self._connection.transaction():
                _install_clock(self._connection)
        else:
            self._write()

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            self.advance(seconds)

    def advance(self, by: float | timedelta) -> datetime:
        self._clock.advance(by)
        self._write()
        return self._clock.now()

    def set(self, to: datetime) -> None:
        self._clock.set(to)
        self._write()

    def _write(self) -> None:
        self._connection.execute("UPDATE detent.test_clock SET at = %s", (self._clock.now(),))


def is_sqlite(url: str) -> bool:
    """Whether the URL names a SQLite file; otherwise it is PostgreSQL."""
    return url.startswith("sqlite:")


def plain_connection(url: str) -> Any:
    """Return an ordinary connection of the driver, in its default mode. The caller commits and closes it."""
    if is_sqlite(url):
        return sqlite3.connect(path_from_url(url.removeprefix("sqlite:///")), timeout=LOCK_SECONDS_MAX)
    import psycopg

    return psycopg.connect(url)


def row_violations(store: Store, url: str) -> list[Violation]:
    """Return the rows that break an invariant, as `verify` does, without comparing definitions.

    A test that changes no definition need not compare them, and on PostgreSQL that takes most of the time of `verify`.
    """
    if is_sqlite(url):
        return store.verify()
    chosen = row_invariants("postgres")
    with closing(plain_connection(url)) as connection:
        answers = _all_rows(connection, [invariant.sql for invariant in chosen])
    return [
        Violation(invariant.name, *(str(part) for part in row))
        for invariant, rows in zip(chosen, answers, strict=True)
        for row in rows
    ]


def row_invariants(dialect: Dialect) -> list[Invariant]:
    """Return the invariants of rows, without those that compare definitions or look at pages."""
    return [invariant for invariant in load(dialect) if invariant.name not in _OF_DEFINITIONS]


def table(url: str, name: str) -> str:
    """Return the name of a table or view of Detent in this database."""
    return f"detent_{name}" if is_sqlite(url) else f"detent.{name}"


def dump(url: str) -> Dump:
    """Return every row of every table of Detent. Equal dumps mean that nothing was changed."""
    with closing(Dumps(url)) as take:
        return take()


class Dumps:
    """Takes dumps of one database. On PostgreSQL they share one connection, since the first queries of a new connection
    cost more than the rows."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._server: Any = None if is_sqlite(url) else plain_connection(url)
        if self._server is not None:
            self._server.autocommit = True

    def __call__(self) -> Dump:
        """Take a dump."""
        if self._server is not None:
            names = [name for (name,) in self._server.execute(_POSTGRES_TABLES).fetchall()]
            tables = _all_rows(self._server, [f"SELECT * FROM {name};" for name in names])
        else:
            with closing(plain_connection(self._url)) as connection:
                names = [name for (name,) in connection.execute(_SQLITE_TABLES).fetchall()]
                tables = [connection.execute(f"SELECT * FROM {name}").fetchall() for name in names]
        return {name[len("detent_") :]: sorted(rows, key=repr) for name, rows in zip(names, tables, strict=True)}

    def close(self) -> None:
        """Close the connection."""
        if self._server is not None:
            self._server.close()


def _all_rows(connection: Any, statements: list[str]) -> list[list[tuple[Any, ...]]]:
    """Return the rows of each statement, in one round trip to the server."""
    cursor = connection.execute("\n".join(statements).encode())
    found = [cursor.fetchall()]
    while cursor.nextset():
        found.append(cursor.fetchall())
    return found


def deadlocks(url: str) -> int:
    """Return how many deadlocks the database has had. SQLite has one writer, so it has none."""
    if is_sqlite(url):
        return 0
    with closing(plain_connection(url)) as connection:
        row = connection.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").fetchone()
        return int(row[0])
