"""The verbs on a connection that belongs to the caller, inside the caller's transaction.

Each verb runs under a savepoint, so a verb that fails leaves the caller's transaction as it was. If there is no
transaction yet, it is begun here, IMMEDIATE, as the driver does with the first write, and the caller commits it. On a
connection in autocommit mode the verb is a transaction of its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from detent.errors import WrongPlace
from detent.model.clock import Clock
from detent.store.sqlite.driver.database_file import file_url
from detent.store.sqlite.driver.executor import Executor, Params, Row, SqliteExecutor
from detent.store.sqlite.driver.failures import translated, values_checked
from detent.store.sqlite.driver.write_connection import WriteConnection
from detent.store.sqlite.verbs import EachAlone, SqliteVerbs

__all__ = ["CallersVerbs", "executor_over"]

T = TypeVar("T")

_SAVEPOINT = "detent_verb"


class CallersVerbs(EachAlone):
    """The verbs in the caller's transaction. Nothing is durable until the caller commits."""

    def __init__(self, connection: object, clock: Clock, database: str) -> None:
        self._executor, self._driver = executor_over(connection)
        self._clock = clock
        self._database = database

    def _name(self) -> str:
        """Return the caller's own database, for messages."""
        try:
            found = self._executor.rows("PRAGMA database_list")
        except Exception:  # SQLAlchemy wraps the driver's errors
            return self._database
        (path,) = (path for _, name, path in found if name == "main")
        return file_url(path) if path else "sqlite in memory"

    def _write(self, work: Callable[[SqliteVerbs], T]) -> T:
        with self._savepoint(), values_checked():
            return work(SqliteVerbs(self._executor, self._clock, self._database))

    def _read(self, work: Callable[[SqliteVerbs], T]) -> T:
        with self._translating(), values_checked():
            return work(SqliteVerbs(self._executor, self._clock, self._database))

    @contextmanager
    def _savepoint(self) -> Iterator[None]:
        run = self._executor.change
        with self._translating():
            begun_here = not self._driver.in_transaction
            if begun_here:
                run("BEGIN IMMEDIATE")
            run(f"SAVEPOINT {_SAVEPOINT}")
            try:
                yield
            except BaseException:
                if self._driver.in_transaction:
                    run(f"ROLLBACK TO {_SAVEPOINT}")
                    run(f"RELEASE {_SAVEPOINT}")
                    if begun_here:
                        run("ROLLBACK")
                raise
            run(f"RELEASE {_SAVEPOINT}")
            if begun_here and self._driver.isolation_level is None:
                run("COMMIT")

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise translated(error, self._name()) from error
        except Exception as error:
            # SQLAlchemy wraps the driver's error in one of its own.
            if isinstance(original := getattr(error, "orig", None), sqlite3.Error):
                raise translated(original, self._name()) from error
            raise


class _AlchemyExecutor:
    """Executes on a SQLAlchemy connection, whose own transaction begins with the first statement."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, sql: str, params: Params = ()) -> list[Row]:
        result = self._connection.exec_driver_sql(sql, params if isinstance(params, dict) else tuple(params))
        return [tuple(row) for row in result.fetchall()]

    def change(self, sql: str, params: Params = ()) -> int:
        result = self._connection.exec_driver_sql(sql, params if isinstance(params, dict) else tuple(params))
        return int(result.rowcount)

    def change_many(self, sql: str, params: Iterable[Sequence[Any]]) -> int:
        return int(self._connection.exec_driver_sql(sql, [tuple(row) for row in params]).rowcount)

    def create_function(self, name: str, function: Callable[[Any], Any]) -> None:
        self._connection.connection.dbapi_connection.create_function(name, 1, function, deterministic=True)


def executor_over(connection: Any) -> tuple[Executor, sqlite3.Connection]:
    """Return an executor on the caller's connection, and the driver's connection under it.

    Accepts a connection of sqlite3, or a Connection or Session of SQLAlchemy over one. Raises `WrongPlace` otherwise.
    """
    if isinstance(connection, WriteConnection):
        raise WrongPlace(
            "a verb on the caller's connection", "with the connection of a commit block", "use tx.intend in the block"
        )
    if isinstance(connection, sqlite3.Connection):
        try:
            sqlite3.Connection.cursor(connection)
        except sqlite3.ProgrammingError as error:
            raise WrongPlace(
                "a verb on the caller's connection",
                f"with one that cannot be used: {error}",
                "give an open connection, in the thread that made it",
            ) from error
        return SqliteExecutor(connection), connection
    if hasattr(connection, "run_sync"):
        raise WrongPlace(
            "a verb on the caller's connection",
            f"with a {type(connection).__module__}.{type(connection).__qualname__}, which is awaited",
            "use app.aio.using",
        )
    if not hasattr(connection, "exec_driver_sql") and callable(getattr(connection, "connection", None)):
        connection = connection.connection()
    if hasattr(connection, "exec_driver_sql"):
        driver = getattr(getattr(connection, "connection", None), "driver_connection", None)
        if isinstance(driver, sqlite3.Connection):
            return _AlchemyExecutor(connection), driver
        if type(driver).__module__.startswith("aiosqlite."):
            # It has the same attributes; of statements, only those of SQLAlchemy are run on it.
            return _AlchemyExecutor(connection), cast(sqlite3.Connection, driver)
    raise WrongPlace(
        "a verb on the caller's connection",
        f"with a {type(connection).__module__}.{type(connection).__qualname__}",
        "give a connection of sqlite3, or a Connection or Session of SQLAlchemy over sqlite3",
    )
