"""A connection of the user's, plain or async: statements with `:name` parameters, commit, roll back.

The steps of a block are generators that yield one request at a time, so that they are written once. `drive` and
`drive_async` execute the requests on a plain or an async connection.
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
    "ForeignConnection",
    "Inside",
    "RollBack",
    "Run",
    "Steps",
    "drive",
    "drive_async",
    "same_file",
    "wrap_connection",
]

T = TypeVar("T")
Answer = tuple[list[tuple[Any, ...]], int]
Dialect = Literal["postgres", "sqlite"]

_ENVIRONMENT_ERRORS = (DatabaseBusy, DatabaseFull, DatabaseReadOnly, DatabaseUnreachable, OutcomeUnknown)
_ACCEPTED = "a connection of psycopg 3 or sqlite3, or a connection or session of SQLAlchemy over one of them"


class Run:
    """Run one statement. The answer is its rows, and how many it changed. Errors are the driver's own."""

    def __init__(self, sql: str, params: dict[str, Any] | None = None) -> None:
        self.sql = sql
        self.params = params or {}


class Call:
    """Call a function that may wait for Detent's own database."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work


class Inside:
    """Call a verb on the user's connection to Detent's own database: of `Store.on`, or of `Store.on_async`."""

    def __init__(self, plain: Callable[[], Any], awaited: Callable[[], Awaitable[Any]]) -> None:
        self.plain = plain
        self.awaited = awaited


class Commit:
    """Commit. Raises `OutcomeUnknown` if the connection is lost."""


class RollBack:
    """Roll back. If the connection is lost, the server does it by itself."""


Step = Run | Call | Inside | Commit | RollBack
Steps = Generator[Step, Any, T]


class ForeignConnection:
    """A connection of the user's. `given` is the object that was passed in."""

    def __init__(self, given: Any, dialect: Dialect, *, is_async: bool, is_alchemy: bool) -> None:
        self.given = given
        self.dialect: Dialect = dialect
        self.is_async = is_async
        self._is_alchemy = is_alchemy

    @property
    def name(self) -> str:
        """The database, for messages."""
        return f"the database of a {type(self.given).__module__.partition('.')[0]} connection"

    def adapt(self, run: Run) -> tuple[str, Any]:
        """Return the statement and its parameters as the driver expects them."""
        if self.dialect == "sqlite":
            return run.sql, run.params
        from detent.store.postgres.named_parameters import translate

        return translate(run.sql, run.params), run.params

    def run(self, run: Run) -> Answer:
        """Run a statement on a plain connection."""
        sql, params = self.adapt(run)
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
        """Run a statement on an async connection."""
        sql, params = self.adapt(run)
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
    def is_usable(self) -> bool:
        """Whether the driver reports that the transaction can continue after a failed statement."""
        if self.dialect == "sqlite" or self._is_alchemy:
            return False
        from psycopg.pq import TransactionStatus

        return bool(self.given.info.transaction_status == TransactionStatus.INTRANS)

    def begin_sql(self) -> str | None:
        """Return the statement that begins a transaction; None if one is open, or if the driver begins it."""
        if self.dialect == "sqlite":
            _, driver = _sqlite_over(self.given)
            return None if driver.in_transaction else "BEGIN IMMEDIATE"
        if self._is_alchemy:
            return None
        from psycopg.pq import TransactionStatus

        idle = self.given.info.transaction_status == TransactionStatus.IDLE
        return "BEGIN" if self.given.autocommit and idle else None

    def commit(self) -> Any:
        """Commit. Returns an awaitable on an async connection."""
        if isinstance(self.given, sqlite3.Connection) and getattr(self.given, "autocommit", -1) is not False:
            return self.given.execute("COMMIT") if self.given.in_transaction else None
        return self.given.commit()

    def roll_back(self) -> Any:
        """Roll back. Returns an awaitable on an async connection."""
        if isinstance(self.given, sqlite3.Connection) and getattr(self.given, "autocommit", -1) is not False:
            return self.given.execute("ROLLBACK") if self.given.in_transaction else None
        return self.given.rollback()

    def path(self) -> str | None:
        """Return the file that a SQLite connection has open."""
        _, driver = _sqlite_over(self.given)
        return next((file for _, name, file in driver.execute("PRAGMA database_list") if name == "main" and file), None)

    def translated(self, error: BaseException, *, committing: bool) -> BaseException:
        """Return an error of the environment as Detent's own; any other error as it is."""
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
        return found if type(found) in _ENVIRONMENT_ERRORS else error


def _sqlite_over(given: Any) -> tuple[Executor, sqlite3.Connection]:
    """Imported here, so that a process that uses PostgreSQL only does not import SQLite's verbs."""
    from detent.store.sqlite.caller_connection import executor_over

    return executor_over(given)


def _inner(given: Any) -> Any:
    return given if hasattr(given, "exec_driver_sql") else given.connection()


def _fetched(result: Any) -> Answer:
    rows = [tuple(row) for row in result.fetchall()] if result.returns_rows else []
    return rows, max(0, result.rowcount)


def wrap_connection(connection: Any) -> ForeignConnection:
    """Wrap a connection that `using` accepts. Raises `WrongPlace` for anything else."""
    if isinstance(connection, sqlite3.Connection):
        _sqlite_over(connection)
        return ForeignConnection(connection, "sqlite", is_async=False, is_alchemy=False)
    with suppress(ImportError):
        import psycopg

        for kind, is_async in ((psycopg.Connection, False), (psycopg.AsyncConnection, True)):
            if isinstance(connection, kind):
                return ForeignConnection(connection, "postgres", is_async=is_async, is_alchemy=False)
    dialect = _alchemy_dialect(connection)
    match (getattr(dialect, "name", None), getattr(dialect, "driver", None)):
        case ("postgresql", "psycopg" | "psycopg_async"):
            return ForeignConnection(connection, "postgres", is_async=_is_async(connection), is_alchemy=True)
        case ("sqlite", "pysqlite"):
            return ForeignConnection(connection, "sqlite", is_async=False, is_alchemy=True)
    kind_name = f"{type(connection).__module__}.{type(connection).__qualname__}"
    raise WrongPlace("ctx.commit(connection)", f"with a {kind_name}", f"give {_ACCEPTED}")


def _alchemy_dialect(connection: Any) -> Any:
    engine = getattr(connection, "engine", None)
    if engine is None and callable(find := getattr(connection, "get_bind", None)):
        engine = find()
    return getattr(engine, "dialect", None)


def _is_async(connection: Any) -> bool:
    return hasattr(connection, "sync_connection") or hasattr(connection, "sync_session")


def same_file(path: str | None, other: str | None) -> bool:
    """Return whether both paths name the same existing file."""
    if path is None or other is None:
        return False
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def drive(steps: Steps[T], connection: ForeignConnection) -> T:
    """Execute the steps on a plain connection."""
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
                    answer = connection.run(step)
                case Call():
                    answer = step.work()
                case Inside():
                    answer = step.plain()
                case Commit():
                    connection.commit()
                case RollBack():
                    connection.roll_back()
        except BaseException as found:
            error = _step_error(found, step, connection)


async def drive_async(steps: Steps[T], connection: ForeignConnection) -> T:
    """Execute the steps on an async connection. Calls to Detent's own database run on a thread."""
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
                    answer = await connection.run_async(step)
                case Call():
                    answer = await asyncio.to_thread(step.work)
                case Inside():
                    answer = await step.awaited()
                case Commit():
                    await connection.commit()
                case RollBack():
                    await connection.roll_back()
        except BaseException as found:
            error = _step_error(found, step, connection)


def _step_error(error: BaseException, step: Step, connection: ForeignConnection) -> BaseException:
    if not isinstance(step, Commit):
        return error
    own = connection.translated(error, committing=True)
    if own is not error:
        own.__cause__ = error
    return own
