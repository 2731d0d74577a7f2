"""The commit boundary: the user's statements and the mark in one transaction; and the same without the mark."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from types import TracebackType
from typing import Any

from detent.errors import DetentError
from detent.model.clock import Clock
from detent.model.records import Commit, Moved, NewJob
from detent.store.commit_block_rules import numbered
from detent.store.contract import Verbs
from detent.store.jobs.sqlite_endings import Holding
from detent.store.sqlite.driver.database import Database
from detent.store.sqlite.driver.executor import SqliteExecutor
from detent.store.sqlite.driver.failures import values_checked
from detent.store.sqlite.driver.group_commit import CommitGroup
from detent.store.sqlite.verbs import SqliteVerbs

__all__ = ["CommitBlock", "HoldersBlock", "SqliteTx"]

_LEASE_SHARE = 1 / 3
"""The share of the remaining lease for which a block may be open."""


class SqliteTx:
    """The transaction that will mark the attempt committed, as the user's code sees it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._intents: list[NewJob] = []
        self._result: str | None = None

    @property
    def connection(self) -> sqlite3.Connection:
        """The driver's connection. The user must not end its transaction."""
        return self._connection

    def execute(self, sql: str, params: dict[str, Any] | None = None) -> tuple[list[tuple[Any, ...]], int]:
        """Run a statement with `:name` parameters. Return its rows, and how many it changed."""
        cursor = self._connection.execute(sql, params or {})
        rows = [] if cursor.description is None else cursor.fetchall()
        return rows, max(0, cursor.rowcount)

    def intend(self, job: NewJob) -> None:
        """Enqueue a job together with the mark."""
        self._intents.append(job)

    def result(self, text: str) -> None:
        """Store the job's result together with the mark."""
        self._result = text

    @property
    def is_bare(self) -> bool:
        """Whether there is nothing to store but the mark."""
        return not self._intents and self._result is None

    def commit_of(self, job_id: int, attempt: int, reserve: Callable[[int], int]) -> Commit:
        """Return the mark, with the result and the intents of the block."""
        return Commit(job_id=job_id, attempt=attempt, result=self._result, intents=numbered(self._intents, reserve))


class CommitBlock:
    """Checks the holder before the user's first statement, at the end, and by the mark, which is the last statement.

    A mark without result and intents is written together with those of the group. There is no other writer between the
    check and the mark, so the lease can only have expired in between: that is checked when the block ends.
    """

    sees_marks = False

    def __init__(self, database: Database, clock: Clock, job_id: int, attempt: int) -> None:
        self._database = database
        self._clock = clock
        self._tx: SqliteTx
        self._group: CommitGroup
        self.job_id = job_id
        self.attempt = attempt
        self.holding: Holding

    def __enter__(self) -> SqliteTx:
        self._group = self._database.group_commit.enter(self)
        self._tx = SqliteTx(self._group.connection)
        return self._tx

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._database.group_commit.leave(self._group, self)
            return
        raised = self._database.group_commit.abandon(self._group, error)
        if raised is not error:
            raise raised from error

    def enter(self, executor: SqliteExecutor, seen: dict[int, Any], coming: list[int]) -> float:
        """Check that this attempt may commit. Return for how long its block may be open. One query reads the jobs of
        all waiting blocks: the answer is valid until the next write."""
        verbs = self._verbs(executor)
        if self.job_id not in seen:
            seen.update(verbs.holders([self.job_id, *coming]))
        holding = verbs.may_commit(self.job_id, self.attempt, seen.get(self.job_id))
        if isinstance(holding, DetentError):
            raise holding
        self.holding = holding
        return holding.seconds * _LEASE_SHARE

    def leave(self, executor: SqliteExecutor) -> bool:
        """Write the mark, unless it can be written together with others. Return whether it is written."""
        verbs = self._verbs(executor)
        if self._tx.is_bare:
            lost = verbs.still_holds(self.holding)
            if lost is not None:
                raise lost
            return False
        self._last(lambda: verbs.job_commit(self._tx.commit_of(self.job_id, self.attempt, verbs.ids_reserve)))
        return True

    def mark_all(self, executor: SqliteExecutor, members: list[CommitBlock]) -> None:
        """Write the marks in one statement."""
        self._verbs(executor).mark_committed([member.holding for member in members])

    def _last(self, write: Callable[[], object]) -> None:
        with values_checked():
            answer = write()
        if isinstance(answer, DetentError):
            raise answer

    def _verbs(self, executor: SqliteExecutor) -> SqliteVerbs:
        return SqliteVerbs(executor, self._clock, self._database.name)


class HoldersBlock(CommitBlock):
    """Checks the holder before the user's first statement. Ends with the statements of `last`; nothing is marked."""

    sees_marks = True

    def __init__(
        self, database: Database, clock: Clock, job_id: int, attempt: int, last: Callable[[Verbs], DetentError | Moved]
    ) -> None:
        super().__init__(database, clock, job_id, attempt)
        self._write_last = last

    def leave(self, executor: SqliteExecutor) -> bool:
        """Write the last statements. There is no mark."""
        self._last(lambda: self._write_last(self._verbs(executor)))
        return True
