"""The commit boundary: the user's statements and the mark in one transaction. And a holder's block without the mark."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from detent.errors import DetentError
from detent.model.clock import Clock
from detent.model.records import Commit, Moved, NewJob
from detent.store.contract import Verbs
from detent.store.intents import numbered
from detent.store.sqlite.driver.database import Database
from detent.store.sqlite.driver.executor import SqliteExecutor
from detent.store.sqlite.driver.failures import values_checked
from detent.store.sqlite.verbs.all import SqliteVerbs

__all__ = ["SqliteTx", "commit_block", "holders_block"]

_LEASE_SHARE = 1 / 3
"""Of what is left of the lease: so long may the block be open."""


class SqliteTx:
    """The hand on the transaction that will mark the attempt committed."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._intents: list[NewJob] = []
        self._result: str | None = None

    @property
    def connection(self) -> sqlite3.Connection:
        """The driver's connection. Its transaction is not the user's to end."""
        return self._connection

    def execute(self, sql: str, params: dict[str, Any] | None = None) -> tuple[list[tuple[Any, ...]], int]:
        """Run a statement with `:name` parameters: its rows, and how many it changed."""
        cursor = self._connection.execute(sql, params or {})
        return cursor.fetchall(), max(0, cursor.rowcount)

    def intend(self, job: NewJob) -> None:
        """Enqueue a job together with the mark."""
        self._intents.append(job)

    def result(self, text: str) -> None:
        """Store the job's result together with the mark."""
        self._result = text

    def commit_of(self, job_id: int, attempt: int, reserve: Callable[[int], int]) -> Commit:
        """The mark, with what has come together for it."""
        return Commit(job_id=job_id, attempt=attempt, result=self._result, intents=numbered(self._intents, reserve))


@contextmanager
def commit_block(database: Database, clock: Clock, job_id: int, attempt: int) -> Iterator[SqliteTx]:
    """The holder is checked before the user's first statement, and again by the mark, which is the last."""

    def mark(tx: SqliteTx, verbs: SqliteVerbs) -> object:
        return verbs.job_commit(tx.commit_of(job_id, attempt, verbs.ids_reserve))

    with _block(database, clock, job_id, attempt, mark) as tx:
        yield tx


@contextmanager
def holders_block(
    database: Database, clock: Clock, job_id: int, attempt: int, leave: Callable[[Verbs], DetentError | Moved]
) -> Iterator[SqliteTx]:
    """The same check before the user's first statement; the last are those of `leave`, and nothing is marked."""
    with _block(database, clock, job_id, attempt, lambda _, verbs: leave(verbs)) as tx:
        yield tx


@contextmanager
def _block(
    database: Database, clock: Clock, job_id: int, attempt: int, last: Callable[[SqliteTx, SqliteVerbs], object]
) -> Iterator[SqliteTx]:
    opened: list[SqliteTx] = []

    def verbs(connection: sqlite3.Connection) -> SqliteVerbs:
        return SqliteVerbs(SqliteExecutor(connection), clock, database.name)

    def check(connection: sqlite3.Connection) -> float:
        left = verbs(connection).may_commit(job_id, attempt)
        if isinstance(left, DetentError):
            raise left
        return left * _LEASE_SHARE

    def leave(connection: sqlite3.Connection) -> None:
        with values_checked():
            answer = last(opened[0], verbs(connection))
        if isinstance(answer, DetentError):
            raise answer

    with database.blocks.block(check, leave) as connection:
        opened.append(SqliteTx(connection))
        yield opened[0]
