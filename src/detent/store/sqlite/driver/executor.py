"""Statements in, rows out: what the verbs ask of a connection, whoever it belongs to."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from detent.store.sqlite.driver.failures import translating

__all__ = ["Executor", "Params", "Row", "SqliteExecutor"]

Row = tuple[Any, ...]
Params = Sequence[Any] | dict[str, Any]


class Executor(Protocol):
    """One transaction, in which statements run one after the other."""

    def rows(self, sql: str, params: Params = ()) -> list[Row]:
        """Run a statement; all its rows."""
        ...

    def change(self, sql: str, params: Params = ()) -> int:
        """Run a statement; how many rows it changed."""
        ...

    def change_many(self, sql: str, params: Iterable[Sequence[Any]]) -> int:
        """Run a statement once for each; how many rows they changed in all."""
        ...

    def teach(self, name: str, function: Callable[[Any], Any]) -> None:
        """Let statements on this connection call a function of one argument, which gives the same for the same."""
        ...


class SqliteExecutor:
    """Over a connection of sqlite3, whatever row and text factories its owner gave it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        # Not by way of the connection, whose cursors may be made for somebody else's statements.
        self._cursor = sqlite3.Cursor(connection)
        self._cursor.row_factory = None

    def rows(self, sql: str, params: Params = ()) -> list[Row]:
        return self._cursor.execute(sql, params).fetchall()

    def rows_checked(self, sql: str, params: Params, database: str) -> list[Row]:
        """Run a statement; all its rows. Raises Detent's own errors."""
        with translating(database):
            return self.rows(sql, params)

    def change(self, sql: str, params: Params = ()) -> int:
        return self._cursor.execute(sql, params).rowcount

    def change_many(self, sql: str, params: Iterable[Sequence[Any]]) -> int:
        return self._cursor.executemany(sql, params).rowcount

    def teach(self, name: str, function: Callable[[Any], Any]) -> None:
        self._cursor.connection.create_function(name, 1, function, deterministic=True)
