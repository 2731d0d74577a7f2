"""What is done on a connection of the user's: statements with `:name` parameters, commit, roll back, in either colour.

The steps of a block are generators that ask for one thing at a time, so that they are written once; `drive` and
`drive_async` carry them out on a plain and on an async connection.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from detent.errors import (
    DatabaseBusy,
    DatabaseFull,
    DatabaseReadOnly,
    DatabaseUnreachable,
    OutcomeUnknown,
    WrongPlace,
)

if TYPE_CHECKING:
    from detent.store.sqlite.driver.executor import Executor

__all__ = [
    "Call",
    "Commit",
    "Dialect",
    "Hand",
    "Inside",
    "RollBack",
    "Run",
    "Steps",
    "drive",
    "drive_async",
    "hand_over",
    "same_file",
]

T = TypeVar("T")
Answer = tuple[list[tuple[Any, ...]], int]
Dialect = Literal["postgres", "sqlite"]

_WORLDS = (DatabaseBusy, DatabaseFull, DatabaseReadOnly, DatabaseUnreachable, OutcomeUnknown)
_TAKES = "a connection of psycopg 3 or sqlite3, or a connection or session of SQLAlchemy over one of them"


class Run:
    """Run one statement: its rows, and how many it changed. What goes wrong is raised as the driver says it."""

    def __init__(self, sql: str, params: dict[str, Any] | None = None) -> None:
        self.sql = sql
        self.params = params or {}


class Call:
    """Do something that may wait, on Detent's own database."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work


class Inside:
    """Do something on Detent's own database through the user's connection: a verb of `Store.on`, or of `on_async`."""

    def __init__(self, plain: Callable[[], Any], awaited: Callable[[], Awaitable[Any]]) -> None:
        self.plain = plain
        self.awaited = awaited


class Commit:
    """COMMIT. `OutcomeUnknown` where the connection was lost meanwhile."""


class RollBack:
    """ROLLBACK; of a connection that is gone the server does it by itself."""


Step = Run | Call | Inside | Commit | RollBack
Steps = Generator[Step, Any, T]


class Hand:
    """A connection of the user's, as it was given."""

    def __init__(self, given: Any, dialect: Dialect, *, is_async: bool, is_alchemy: bool) -> None:
        self.given = given
        self.dialect: Dialect = dialect
        self.is_async = is_async
        self._is_alchemy = is_alchemy

    @property
    def name(self) -> str:
        """For messages."""
        return f"the database of a {type(self.given).__module__.partition('.')[0]} connection"

    def written(self, run: Run) -> tuple[str, Any]:
        """The statement and its parameters as the driver wants them."""
        if self.dialect == "sqlite":
            return run.sql, run.params
        from detent.store.postgres.named import translate

        return translate(run.sql, run.params), run.params

    def run(self, run: Run) -> Answer:
        """On a plain connection."""
        sql, params = self.written(run)
        if self._is_alchemy:
            return _fetched(_inner(self.given).exec_driver_sql(sql, params))
        if self.dialect == "sqlite":
            cursor = self.given.execute(sql, params)
            return cursor.fetchall(), max(0, cursor.rowcount)
        from psycopg.rows import tuple_row

        with self.given.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(sql.encode(), params)
            return cursor.fetchall() if cursor.description else [], max(0, cursor.rowcount)

    async def run_async(self, run: Run) -> Answer:
        """On an async one."""
        sql, params = self.written(run)
        if self._is_alchemy:
            inner = self.given
            if not hasattr(inner, "exec_driver_sql"):
                inner = await inner.connection()
            return _fetched(await inner.exec_driver_sql(sql, params))
        from psycopg.rows import tuple_row

        async with self.given.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(sql.encode(), params)
            return await cursor.fetchall() if cursor.description else [], max(0, cursor.rowcount)

    @property
    def is_sound(self) -> bool:
        """Whether the driver itself says that its transaction can go on, whatever has failed in it."""
        if self.dialect == "sqlite" or self._is_alchemy:
            return False
        from psycopg.pq import TransactionStatus

        return bool(self.given.info.transaction_status == TransactionStatus.INTRANS)

    def begin_sql(self) -> str | None:
        """What begins a transaction here; None where one is open, or the driver begins it by itself."""
        if self.dialect == "sqlite":
            _, driver = _sqlite_over(self.given)
            return None if driver.in_transaction else "BEGIN IMMEDIATE"
        if self._is_alchemy:
            return None
        from psycopg.pq import TransactionStatus

        idle = self.given.info.transaction_status == TransactionStatus.IDLE
        return "BEGIN" if self.given.autocommit and idle else None

    def commit(self) -> Any:
        """As the driver does it: done, or to be awaited."""
        if isinstance(self.given, sqlite3.Connection) and getattr(self.given, "autocommit", -1) is not False:
            return self.given.execute("COMMIT") if self.given.in_transaction else None
        return self.given.commit()

    def roll_back(self) -> Any:
        """As the driver does it: done, or to be awaited."""
        if isinstance(self.given, sqlite3.Connection) and getattr(self.given, "autocommit", -1) is not False:
            return self.given.execute("ROLLBACK") if self.given.in_transaction else None
        return self.given.rollback()

    def path(self) -> str | None:
        """Which file a connection of SQLite has open."""
        _, driver = _sqlite_over(self.given)
        return next((file for _, name, file in driver.execute("PRAGMA database_list") if name == "main" and file), None)

    def translated(self, error: BaseException, *, committing: bool) -> BaseException:
        """What the world did to a statement of the engine's, as Detent says it; anything else as it is."""
        cause = getattr(error, "orig", None) or error
        found: BaseException = error
        if isinstance(cause, sqlite3.Error):
            from detent.store.sqlite.driver.failures import translated as of_sqlite

            found = of_sqlite(cause, self.name, committing=committing)
        elif self.dialect == "postgres":
            import psycopg

            from detent.store.postgres.driver.failures import translated as of_postgres

            if isinstance(cause, psycopg.Error):
                found = of_postgres(cause, self.name, committing=committing)
        return found if type(found) in _WORLDS else error


def _sqlite_over(given: Any) -> tuple[Executor, sqlite3.Connection]:
    """Imported here: a process that works on PostgreSQL alone needs nothing of SQLite's verbs."""
    from detent.store.sqlite.caller import executor_over

    return executor_over(given)


def _inner(given: Any) -> Any:
    return given if hasattr(given, "exec_driver_sql") else given.connection()


def _fetched(result: Any) -> Answer:
    rows = [tuple(row) for row in result.fetchall()] if result.returns_rows else []
    return rows, max(0, result.rowcount)


def hand_over(connection: Any) -> Hand:
    """A hand on what `using` takes; refuses the rest with `WrongPlace`."""
    if isinstance(connection, sqlite3.Connection):
        _sqlite_over(connection)
        return Hand(connection, "sqlite", is_async=False, is_alchemy=False)
    with suppress(ImportError):
        import psycopg

        for kind, is_async in ((psycopg.Connection, False), (psycopg.AsyncConnection, True)):
            if isinstance(connection, kind):
                return Hand(connection, "postgres", is_async=is_async, is_alchemy=False)
    dialect = _alchemy_dialect(connection)
    match (getattr(dialect, "name", None), getattr(dialect, "driver", None)):
        case ("postgresql", "psycopg" | "psycopg_async"):
            return Hand(connection, "postgres", is_async=_is_async(connection), is_alchemy=True)
        case ("sqlite", "pysqlite"):
            return Hand(connection, "sqlite", is_async=False, is_alchemy=True)
    kind_name = f"{type(connection).__module__}.{type(connection).__qualname__}"
    raise WrongPlace("ctx.commit(connection)", f"with a {kind_name}", f"give {_TAKES}")


def _alchemy_dialect(connection: Any) -> Any:
    engine = getattr(connection, "engine", None)
    if engine is None and callable(find := getattr(connection, "get_bind", None)):
        engine = find()
    return getattr(engine, "dialect", None)


def _is_async(connection: Any) -> bool:
    return hasattr(connection, "sync_connection") or hasattr(connection, "sync_session")


def same_file(path: str | None, other: str | None) -> bool:
    """Whether both name one file that is there."""
    if path is None or other is None:
        return False
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def drive(steps: Steps[T], hand: Hand) -> T:
    """Carry the steps out on a plain connection."""
    answer: Any = None
    error: BaseException | None = None
    while True:
        try:
            step = steps.send(answer) if error is None else steps.throw(error)
        except StopIteration as end:
            result: T = end.value
            return result
        answer, error = None, None
        try:
            match step:
                case Run():
                    answer = hand.run(step)
                case Call():
                    answer = step.work()
                case Inside():
                    answer = step.plain()
                case Commit():
                    hand.commit()
                case RollBack():
                    hand.roll_back()
        except BaseException as found:
            error = _of_step(found, step, hand)


async def drive_async(steps: Steps[T], hand: Hand) -> T:
    """Carry them out on an async one; what waits for Detent's own database does so on a thread."""
    answer: Any = None
    error: BaseException | None = None
    while True:
        try:
            step = steps.send(answer) if error is None else steps.throw(error)
        except StopIteration as end:
            result: T = end.value
            return result
        answer, error = None, None
        try:
            match step:
                case Run():
                    answer = await hand.run_async(step)
                case Call():
                    answer = await asyncio.to_thread(step.work)
                case Inside():
                    answer = await step.awaited()
                case Commit():
                    await hand.commit()
                case RollBack():
                    await hand.roll_back()
        except BaseException as found:
            error = _of_step(found, step, hand)


def _of_step(error: BaseException, step: Step, hand: Hand) -> BaseException:
    if not isinstance(step, Commit):
        return error
    own = hand.translated(error, committing=True)
    if own is not error:
        own.__cause__ = error
    return own
