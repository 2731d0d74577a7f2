"""Execute the statements of the verbs, on Detent's own connection or on one of the caller's."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from detent.store.sqlite.driver.failures import translating

__all__ = ["Executor", "Params", "Row", "SqliteExecutor"]

Row = tuple[Any, ...]
Params = Sequence[Any] | dict[str, Any]


class Executor(Protocol):
    """Executes statements inside one transaction."""

    def rows(self, sql: str, params: Params = ()) -> list[Row]:
        """Run a statement. Return all its rows."""
        ...

    def change(self, sql: str, params: Params = ()) -> int:
        """Run a statement. Return how many rows it changed."""
        ...

    def change_many(self, sql: str, params: Iterable[Sequence[Any]]) -> int:
        """Run a statement once for each item. Return how many rows were changed in all."""
        ...

    def create_function(self, name: str, function: Callable[[Any], Any]) -> None:
        """Make a deterministic function of one argument available to statements on this connection."""
        ...


class SqliteExecutor:
    """Executes on a connection of sqlite3, independent of the row factory that its owner has set."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        # Not `connection.cursor()`: a `WriteConnection` returns cursors that check the user's statements. And not
        # `sqlite3.Cursor(connection)`: the connection would remember each of them for ever.
        self._cursor = sqlite3.Connection.cursor(connection)
        self._cursor.row_factory = None

    def rows(self, sql: str, params: Params = ()) -> list[Row]:
        return self._cursor.execute(sql, params).fetchall()

    def rows_checked(self, sql: str, params: Params, database: str) -> list[Row]:
        """Run a statement. Return all its rows. Raises Detent's own errors."""
        with translating(database):
            return self.rows(sql, params)

    def change(self, sql: str, params: Params = ()) -> int:
        return self._cursor.execute(sql, params).rowcount

    def change_many(self, sql: str, params: Iterable[Sequence[Any]]) -> int:
        return self._cursor.executemany(sql, params).rowcount

    def create_function(self, name: str, function: Callable[[Any], Any]) -> None:
        self._cursor.connection.create_function(name, 1, function, deterministic=True)
