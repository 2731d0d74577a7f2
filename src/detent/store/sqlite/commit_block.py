"""The commit boundary: the user's statements and the mark in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from detent.errors import DetentError, WrongPlace
from detent.model.clock import Clock
from detent.model.records import Commit, NewJob
from detent.store.intents import numbered
from detent.store.sqlite.driver.database import Database
from detent.store.sqlite.driver.executor import SqliteExecutor
from detent.store.sqlite.verbs.all import SqliteVerbs

__all__ = ["SqliteTx", "commit_block"]

_SAVEPOINT = "detent_block"


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
    with database.writing() as connection:
        verbs = SqliteVerbs(SqliteExecutor(connection), clock, database.name)
        if (refusal := verbs.may_commit(job_id, attempt)) is not None:
            raise refusal
        connection.execute(f"SAVEPOINT {_SAVEPOINT}")
        tx = SqliteTx(connection)
        yield tx
        _end_savepoint(connection)
        answer = verbs.job_commit(tx.commit_of(job_id, attempt, verbs.ids_reserve))
        if isinstance(answer, DetentError):
            raise answer


def _end_savepoint(connection: sqlite3.Connection) -> None:
    """The savepoint is there only if this is still the transaction in which the holder was checked."""
    try:
        connection.execute(f"RELEASE {_SAVEPOINT}")
    except sqlite3.OperationalError as error:
        raise WrongPlace(
            "COMMIT or ROLLBACK", "inside a commit block", "the block ends its transaction by itself"
        ) from error
