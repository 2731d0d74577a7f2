"""The commit boundary: check, the user's statements, intents, and the mark as the last of them, in one transaction."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from detent.errors import AlreadyCommitted, DatabaseError, DatabaseUnreachable, DetentError, OutcomeUnknown, WrongPlace
from detent.model.records import Commit, Moved, NewJob
from detent.store.commit_block_rules import failed_inside, numbered, refuse_ending
from detent.store.jobs.postgres_attempts import commit_check, job_commit, job_mark, mark_refused
from detent.store.jobs.postgres_enqueue import ids_reserve
from detent.store.postgres.driver.connection import Connection, OwnConnection
from detent.store.postgres.driver.connection_pool import ConnectionPool
from detent.store.postgres.driver.failures import is_server_failure, translated
from detent.store.postgres.driver.session import ConnectionSession, Session, commit, roll_back
from detent.store.postgres.named import positional, translate
from detent.store.postgres.statement import Row

__all__ = ["PostgresTx", "commit_block", "holders_block"]

_ORDINARY = ("SELECT", "INSERT", "UPDATE", "DELETE", "MERGE")
_OF_THE_SESSION = re.compile(r"set_config|advisory|\btemp", re.IGNORECASE)


class PostgresTx:
    """The hand on the transaction that will mark the attempt committed."""

    def __init__(self, connection: OwnConnection, name: str) -> None:
        self.leaves_traces = False
        self.failed: psycopg.Error | None = None
        self._unsent = False
        self._connection = connection
        self._name = name
        self._intents: list[NewJob] = []
        self._result: str | None = None

    @property
    def connection(self) -> Connection:
        """The driver's connection. Its transaction is not the user's to end."""
        self.leaves_traces = True
        return self._connection

    @property
    def has_failed(self) -> bool:
        """Whether a statement has failed for good: the server says so, or it was not even sent. What was undone by
        going back to a savepoint has not."""
        return self._in_error or self._unsent

    @property
    def _in_error(self) -> bool:
        return self._connection.info.transaction_status == TransactionStatus.INERROR

    def execute(self, sql: str, params: dict[str, Any] | None = None) -> tuple[list[tuple[Any, ...]], int]:
        """Run a statement with `:name` parameters: its rows, and how many it changed.

        What is wrong with the user's own statement is raised as the driver says it; what is wrong with the database
        (a lost connection, a deadlock, a server without room or that takes no writes) as Detent says it. What would
        end the transaction is refused before it is run.
        """
        refuse_ending(sql)
        values = params or {}
        try:
            rows, count, said = self._sent(sql, values)
            self.leaves_traces |= any(_leaves_traces(sql, one) for one in said)
            return rows, count
        except psycopg.Error as error:
            self.failed = error
            self._unsent |= not self._in_error
            if is_server_failure(error):
                raise translated(error, self._name) from error
            raise

    def _sent(self, sql: str, values: dict[str, Any]) -> tuple[list[Row], int, list[str | None]]:
        """The short way, unless the connection may have been taught something by its user meanwhile. What the server
        said is of each statement, where the text has several."""
        direct = None if self.leaves_traces else self._connection.direct
        text, names = positional(sql, tuple(values))
        if direct is not None and names:
            rows, count, said = direct.execute(text, [values[name] for name in names])
            return rows, count, [said]
        with self._connection.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(translate(sql, values).encode(), values)
            rows, count = cursor.fetchall() if cursor.description else [], max(0, cursor.rowcount)
            return rows, count, [result.statusmessage for result in cursor.results()]

    def end(self) -> None:
        """The user's part is over. Refuses where a statement of it has failed."""
        if self.leaves_traces:
            self._connection.forget_prepared()
        if self.has_failed:
            raise failed_inside(self.failed) from self.failed

    def intend(self, job: NewJob) -> None:
        """Enqueue a job together with the mark."""
        self._intents.append(job)

    def result(self, text: str) -> None:
        """Store the job's result together with the mark."""
        self._result = text

    def commit_of(self, job_id: int, attempt: int, reserve: Callable[[int], int]) -> Commit:
        """The mark, with what has come together for it."""
        return Commit(job_id=job_id, attempt=attempt, result=self._result, intents=numbered(self._intents, reserve))


def _leaves_traces(sql: str, said: str | None) -> bool:
    """Whether a statement may have changed the session, which others use after this block."""
    return (said or "").partition(" ")[0] not in _ORDINARY or _OF_THE_SESSION.search(sql) is not None


def _wipe(connection: OwnConnection) -> None:
    """Settings, temporary tables, locks of the session: nothing of the block is left for whoever comes next."""
    connection.forget_prepared()
    if not connection.closed:
        try:
            connection.execute("DISCARD ALL")
        except psycopg.Error:
            connection.close()


@contextmanager
def commit_block(
    pool: ConnectionPool, name: str, job_id: int, attempt: int, settle: Callable[[int, int], DetentError | None]
) -> Iterator[PostgresTx]:
    """The holder is checked before the user's first statement, and again by the mark, which is the last.

    `settle` looks at what a COMMIT whose answer was lost has left behind.
    """
    with pool.connection() as connection, ExitStack() as after:
        session = ConnectionSession(connection, name, connection.direct)
        try:
            refused, xact = session.begin_with(commit_check(job_id, attempt))
            if refused is not None:
                raise refused
            tx = PostgresTx(connection, name)
            after.callback(lambda: _wipe(connection) if tx.leaves_traces else None)
            yield tx
            tx.end()
            mark = tx.commit_of(job_id, attempt, lambda count: session.run(ids_reserve(count)))
            answer = session.run(job_commit(mark, xact)) if mark.intents else None
            if isinstance(answer, DetentError):
                raise answer
        except BaseException:
            roll_back(connection)
            raise
        try:
            if mark.intents:
                commit(connection, name)
            else:
                session.commit_with(job_mark(mark, xact), lambda error: mark_refused(error, mark))
        except OutcomeUnknown as lost:
            _settle(lost, lambda: settle(job_id, attempt), attempt)


@contextmanager
def holders_block(
    pool: ConnectionPool, name: str, job_id: int, attempt: int, leave: Callable[[Session], DetentError | Moved]
) -> Iterator[PostgresTx]:
    """The same check before the user's first statement; the last are those of `leave`, and nothing is marked. A COMMIT
    whose answer was lost is `OutcomeUnknown`: whoever comes next sees by the rows what became of it."""
    with pool.connection() as connection, ExitStack() as after:
        session = ConnectionSession(connection, name, connection.direct)
        try:
            refused, xact = session.begin_with(commit_check(job_id, attempt))
            if refused is not None:
                raise refused
            tx = PostgresTx(connection, name)
            after.callback(lambda: _wipe(connection) if tx.leaves_traces else None)
            yield tx
            tx.end()
            refused, now_in = session.run(commit_check(job_id, attempt))
            if now_in != xact:
                raise WrongPlace("COMMIT or ROLLBACK", "inside a block", "the block ends its transaction by itself")
            answer = refused or leave(session)
            if isinstance(answer, DetentError):
                raise answer
        except BaseException:
            roll_back(connection)
            raise
        commit(connection, name)


def _settle(lost: OutcomeUnknown, look: Callable[[], DetentError | None], attempt: int) -> None:
    """C6: committed by this attempt is what was wanted; anything else is a commit that did not happen."""
    try:
        found = look()
    except DatabaseError:
        raise lost from None
    if isinstance(found, AlreadyCommitted) and found.attempt == attempt:
        return
    raise DatabaseUnreachable(lost.database, f"the commit did not happen: {lost.detail}") from lost
