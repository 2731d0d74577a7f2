"""A database in memory whose transactions are savepoints inside a larger one, so that everything can be undone."""

from __future__ import annotations

from typing import Any

from detent.model.clock import Clock
from detent.store.sqlite.driver import database as database_module
from detent.store.sqlite.driver.write_connection import WriteConnection
from detent.store.sqlite.store import SqliteStore

__all__ = ["NestedConnection", "nested_store"]

_STATEMENTS_MAX = 5000
"""Compiled statements that are kept: more than there are."""


class NestedConnection(WriteConnection):
    """The only connection of its database. Between `begin_whole` and the next one, a transaction is a savepoint inside
    a larger one, which is rolled back then: the database is empty again, and what SQLite has compiled stays."""

    is_whole = False
    is_in_transaction = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "cached_statements": _STATEMENTS_MAX})

    def execute_own(self, sql: str) -> None:
        if not self.is_whole:
            super().execute_own(sql)
        elif sql == "BEGIN IMMEDIATE":
            super().execute_own("SAVEPOINT whole")
            self.is_in_transaction = True
        elif sql == "COMMIT":
            super().execute_own("RELEASE whole")
            self.is_in_transaction = False
        elif sql == "ROLLBACK":
            super().execute_own("ROLLBACK TO whole")
            super().execute_own("RELEASE whole")
            self.is_in_transaction = False

    @property
    def in_transaction(self) -> bool:
        return self.is_in_transaction if self.is_whole else super().in_transaction

    def begin_whole(self) -> None:
        """Undo everything since the last call, and begin."""
        if self.is_whole:
            super().execute_own("ROLLBACK")
        self.is_in_transaction = False
        super().execute_own("BEGIN IMMEDIATE")
        self.is_whole = True

    def mark(self) -> None:
        """Begin something that may be undone. Marks may be nested."""
        super().execute_own("SAVEPOINT mark")

    def undo(self) -> None:
        """Undo everything since the last mark, and forget the mark."""
        super().execute_own("ROLLBACK TO mark")
        super().execute_own("RELEASE mark")


def nested_store(clock: Clock, more_sql: str) -> tuple[SqliteStore, NestedConnection]:
    """Return an empty database in memory with one more table, and its connection."""
    setattr(database_module, "WriteConnection", NestedConnection)  # noqa: B010 - mypy refuses the assignment
    try:
        store = SqliteStore(":memory:", clock=clock)
        store.ready()
        with store._file.writing() as connection:
            connection.execute(more_sql)
    finally:
        setattr(database_module, "WriteConnection", WriteConnection)  # noqa: B010
    assert isinstance(connection, NestedConnection)
    return store, connection
