"""The commit boundary: the check, the user's statements, intents, and the mark as the last, in one transaction."""

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
from detent.store.postgres.driver.session import CheckedSession, ConnectionSession, Session, commit, roll_back
from detent.store.postgres.named_parameters import positional, translate
from detent.store.postgres.statement import Row

__all__ = ["PostgresTx", "commit_block", "holders_block"]

_ORDINARY = ("SELECT", "INSERT", "UPDATE", "DELETE", "MERGE")
_SESSION_STATE = re.compile(r"set_config|advisory|\btemp", re.IGNORECASE)


class PostgresTx:
    """The transaction that will mark the attempt committed, as the user's code sees it."""

    def __init__(self, connection: OwnConnection, name: str) -> None:
        self.changes_session = False
        self.failed: psycopg.Error | None = None
        self._unsent = False
        self._connection = connection
        self._name = name
        self._intents: list[NewJob] = []
        self._result: str | None = None

    @property
    def connection(self) -> Connection:
        """The driver's connection. The user must not end its transaction."""
        self.changes_session = True
        return self._connection

    @property
    def has_failed(self) -> bool:
        """Whether a statement has failed: the server says so, or it was not even sent. A failure that was rolled back
        to a savepoint does not count."""
        return self._in_error or self._unsent

    @property
    def _in_error(self) -> bool:
        return self._connection.info.transaction_status == TransactionStatus.INERROR

    def execute(self, sql: str, params: dict[str, Any] | None = None) -> tuple[list[tuple[Any, ...]], int]:
        """Run a statement with `:name` parameters. Return its rows, and how many it changed.

        An error in the user's own statement is raised as the driver's error; an error of the environment (a lost
        connection, a deadlock, a full or read-only server) as Detent's. A statement that would end the transaction is
        refused before it is sent.
        """
        refuse_ending(sql)
        values = params or {}
        try:
            rows, count, tags = self._send(sql, values)
            self.changes_session |= any(_changes_session(sql, tag) for tag in tags)
            return rows, count
        except psycopg.Error as error:
            self.failed = error
            self._unsent |= not self._in_error
            if is_server_failure(error):
                raise translated(error, self._name) from error
            raise

    def _send(self, sql: str, values: dict[str, Any]) -> tuple[list[Row], int, list[str | None]]:
        """Send it directly, unless the user may have changed the session. Return rows, count and the command tag of
        each statement in the text."""
        direct = None if self.changes_session else self._connection.direct
        text, names = positional(sql, tuple(values))
        if direct is not None and names:
            rows, count, tag = direct.execute(text, [values[name] for name in names])
            return rows, count, [tag]
        with self._connection.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(translate(sql, values).encode(), values)
            rows, count = cursor.fetchall() if cursor.description else [], max(0, cursor.rowcount)
            return rows, count, [result.statusmessage for result in cursor.results()]

    def end(self) -> None:
        """End the user's part. Raises if one of its statements has failed."""
        if self.changes_session:
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
        """Return the mark, with the result and the intents of the block."""
        return Commit(job_id=job_id, attempt=attempt, result=self._result, intents=numbered(self._intents, reserve))


def _changes_session(sql: str, tag: str | None) -> bool:
    """Return whether a statement may have changed the session, which is used again after this block."""
    return (tag or "").partition(" ")[0] not in _ORDINARY or _SESSION_STATE.search(sql) is not None


def _reset_session(connection: OwnConnection) -> None:
    """Remove what the block may have left in the session: settings, temporary tables, locks."""
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
    """Check the holder before the user's first statement, and again by the mark, which is the last statement.

    `settle` finds out the outcome of a COMMIT whose answer was lost.
    """
    with pool.connection() as connection, ExitStack() as after:
        session = ConnectionSession(connection, name, connection.direct)
        try:
            refused, xact = session.begin_with(commit_check(job_id, attempt))
            if refused is not None:
                raise refused
            tx = PostgresTx(connection, name)
            after.callback(lambda: _reset_session(connection) if tx.changes_session else None)
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
    """Check the holder before the user's first statement and before those of `leave`; nothing is marked. A COMMIT
    whose answer was lost is `OutcomeUnknown`: the next attempt finds out from the rows."""
    with pool.connection() as connection, ExitStack() as after:
        session = ConnectionSession(connection, name, connection.direct)
        try:
            refused, xact = session.begin_with(commit_check(job_id, attempt))
            if refused is not None:
                raise refused
            tx = PostgresTx(connection, name)
            after.callback(lambda: _reset_session(connection) if tx.changes_session else None)
            yield tx
            tx.end()

            def passed(found: tuple[DetentError | None, str]) -> None:
                if found[1] != xact:
                    raise WrongPlace("COMMIT or ROLLBACK", "inside a block", "the block ends its transaction by itself")
                if found[0] is not None:
                    raise found[0]

            last = CheckedSession(session, commit_check(job_id, attempt), passed)
            if tx.changes_session:
                # The user may have ended the transaction. Then nothing may be written after it.
                last.end_check()
            answer = leave(last)
            last.end_check()
            if isinstance(answer, DetentError):
                raise answer
        except BaseException:
            roll_back(connection)
            raise
        session.commit()


def _settle(lost: OutcomeUnknown, look: Callable[[], DetentError | None], attempt: int) -> None:
    """C6: return if this attempt has committed; otherwise the commit did not happen."""
    try:
        found = look()
    except DatabaseError:
        raise lost from None
    if isinstance(found, AlreadyCommitted) and found.attempt == attempt:
        return
    raise DatabaseUnreachable(lost.database, f"the commit did not happen: {lost.detail}") from lost
