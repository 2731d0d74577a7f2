"""A store whose clock the test turns, and a look at its bare tables.

    with turnable_store(url) as (store, clock):
        clock.advance(31)

On SQLite the clock is injected. On PostgreSQL time is the database's own, so the test's database gets a
`detent.clock()` that reads a one-row table; `install_clock` puts it there once, and a copy of that database carries it
along. What is read or typed by hand goes through `plain_connection`: an ordinary connection, as a user has it.
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
from detent.store.invariants import load
from detent.store.open import open_store
from detent.store.sqlite.driver.database_file import path_from_url

__all__ = [
    "START",
    "StoreClock",
    "another_store",
    "deadlocks",
    "dump",
    "install_clock",
    "is_sqlite",
    "plain_connection",
    "row_violations",
    "table",
    "turnable_store",
]

START = datetime(2026, 1, 1, tzinfo=UTC)
"""Where every test's time begins."""

LOCK_SECONDS_MAX = 60.0

_SQLITE_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) = 'detent_'"
_POSTGRES_TABLES = """
    SELECT 'detent.' || tablename FROM pg_tables WHERE schemaname = 'detent' AND tablename <> 'test_clock'
"""

_IS_TURNABLE = "SELECT 1 FROM pg_proc WHERE oid = to_regprocedure('detent.clock()') AND prosrc LIKE '%test_clock%'"

_OF_DEFINITIONS = {"constraints_are_in_place", "definitions_are_in_place", "guards_are_in_place", "storage_is_sound"}

Dump = dict[str, list[tuple[Any, ...]]]


class StoreClock(Clock, Protocol):
    """The database's clock in a test: it stands still until it is turned, and never goes back."""

    def advance(self, by: float | timedelta) -> datetime:
        """Turn it forward and give the new time."""
        ...

    def set(self, to: datetime) -> None:
        """Turn it forward to that time; an earlier one is refused."""
        ...


@contextmanager
def turnable_store(url: str) -> Iterator[tuple[Store, StoreClock]]:
    """The store behind `url`, ready for use, and its clock, which begins at `START`. Both are closed at the end."""
    if is_sqlite(url):
        turnable = TurnableClock(START)
        with closing(open_store(url, clock=turnable)) as store:
            store.ready()
            yield store, turnable
        return
    with closing(open_store(url)) as store:
        store.ready()
        with closing(_TableClock(url)) as table_clock:
            yield store, table_clock


def another_store(url: str, clock: StoreClock | None = None) -> Store:
    """A further store on a database that is ready, with connections of its own: a second process, as it were.

    It shares the time of `clock`; a process of its own on SQLite has none to share, and its time stands at `START`.
    """
    return open_store(url, clock=clock if isinstance(clock, TurnableClock) else TurnableClock(START))


def install_clock(url: str) -> None:
    """Let the time of a PostgreSQL test database be read from a table, from `START` on. Its owner calls it."""
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


class _TableClock:
    """A `TurnableClock` whose hands stand in the database, seen by every connection at once."""

    def __init__(self, url: str) -> None:
        self._clock = TurnableClock(START)
        self._connection = plain_connection(url)
        self._connection.autocommit = True
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

    def close(self) -> None:
        self._connection.close()

    def _write(self) -> None:
        self._connection.execute("UPDATE detent.test_clock SET at = %s", (self._clock.now(),))


def is_sqlite(url: str) -> bool:
    """Whether the url names a SQLite file; otherwise it is PostgreSQL's."""
    return url.startswith("sqlite:")


def plain_connection(url: str) -> Any:
    """An ordinary connection of the driver's own, in the driver's default mode. The caller commits and closes."""
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
    with closing(plain_connection(url)) as connection:
        return [
            Violation(invariant.name, *(str(part) for part in row))
            for invariant in load("postgres")
            if invariant.name not in _OF_DEFINITIONS
            for row in connection.execute(invariant.sql.encode()).fetchall()
        ]


def table(url: str, name: str) -> str:
    """The name by which a table or view of Detent's goes in this database."""
    return f"detent_{name}" if is_sqlite(url) else f"detent.{name}"


def dump(url: str) -> Dump:
    """Every row of every table of Detent's, letter for letter: equal dumps mean that nothing was changed."""
    with closing(plain_connection(url)) as connection:
        listing = _SQLITE_TABLES if is_sqlite(url) else _POSTGRES_TABLES
        names = [name for (name,) in connection.execute(listing).fetchall()]
        return {name[len("detent_") :]: _rows(connection, name) for name in names}


def _rows(connection: Any, name: str) -> list[tuple[Any, ...]]:
    return sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr)


def deadlocks(url: str) -> int:
    """How many deadlocks the database has met. SQLite has one writer, so it has none."""
    if is_sqlite(url):
        return 0
    with closing(plain_connection(url)) as connection:
        row = connection.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").fetchone()
        return int(row[0])
