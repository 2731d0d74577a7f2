"""Waiting for work on PostgreSQL: LISTEN on a connection of its own, and a row that says that somebody waits.

Enqueuers notify only while the row says so, and the first of them takes it down: many enqueuers and no waiter cost no
NOTIFY, which would let their commits queue up behind one another. A notification may be lost (a pooler, a restart, a
race): whoever waits looks again after its time.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import psycopg

from detent.errors import DatabaseError
from detent.store.postgres.driver.connection import OwnConnection
from detent.store.postgres.driver.connection_pool import ConnectionPool
from detent.store.postgres.driver.failures import translating
from detent.store.postgres.statement import Statement

__all__ = ["PostgresWake"]

T = TypeVar("T")

log = logging.getLogger("detent.store")

_CHANNEL = "detent"
_RING_SECONDS_MAX = 1.0
_UNHEARD = "the server accepts LISTEN, but a transaction pooler may stand before it"


class PostgresWake:
    """One listening connection, opened when somebody first waits; without it, waiting is only patience."""

    def __init__(
        self, pool: ConnectionPool, name: str, announce: Callable[[float], None], ring: Callable[[], None]
    ) -> None:
        self._pool = pool
        self._name = name
        self._announce = announce
        self._ring = ring
        self._is_heard = False
        self._is_deaf = False
        self._connection: OwnConnection | None = None
        self._pipe: tuple[int, int] | None = None
        self._pid = os.getpid()

    @property
    def is_sure(self) -> bool:
        """Whether the listening connection has heard a bell that was rung on another. Behind a transaction pooler it
        does not, though LISTEN is accepted there."""
        return self._is_heard and self._connection is not None and not self._connection.closed

    def version(self, timeout: float = 2.0) -> int:
        """Say that somebody is about to wait; what was notified before this is old news."""
        if os.getpid() != self._pid:
            self._connection = self._pipe = None
            self._pid = os.getpid()
        if self._pipe is None:
            self._pipe = os.pipe()
            for end in self._pipe:
                os.set_blocking(end, False)
        # Reading tells whether the connection is lost, and another one is needed.
        self._drain()
        failure = self._listening()
        self._announce(2 * timeout + 1.0)
        self._report(failure)
        return 0

    def wait(self, version: int, timeout: float) -> bool:
        """Until a notification, an interrupt, or the end of the time. What woke us is read when we wait again: now
        there is something to do."""
        connection = self._connection
        if connection is not None and (connection.closed or self._has_heard(connection)):
            return True  # it was lost, or the news came, while something else was read
        watched = select.poll()
        if self._pipe is not None:
            watched.register(self._pipe[0], select.POLLIN)
        if connection is not None and not connection.closed:
            watched.register(connection.fileno(), select.POLLIN)
        return bool(watched.poll(int(timeout * 1000)))

    def prepare(self, statement: Statement[T], run: Callable[[Statement[T]], T]) -> Callable[[], T]:
        """The statement, ready to be sent on the connection that listens where that has heard. Else it is run
        elsewhere: there is no short way, or what came was its end."""
        connection = self._connection
        if connection is None or connection.direct is None:
            return partial(run, statement)
        try:
            ask = connection.direct.prepare_fetch(statement.sql, statement.params)
        except psycopg.Error:
            return partial(run, statement)

        def send() -> T:
            if not _is_there(connection) or not self._has_heard(connection):
                return run(statement)
            with translating(self._name, committing=True):
                return statement.decode(ask())

        return send

    def interrupt(self) -> None:
        """Nobody waits any longer."""
        if self._pipe is not None:
            with contextlib.suppress(BlockingIOError):
                os.write(self._pipe[1], b"!")

    def close(self) -> None:
        """Stop listening."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        for end in self._pipe or ():
            os.close(end)
        self._pipe = None

    def _listening(self) -> str | None:
        """Listen, if that is not done already; why new work is not heard of, if it is not."""
        if self._connection is not None and not self._connection.closed:
            if self._pool.is_valid(self._connection):
                return None if self._is_heard else _UNHEARD
            self._connection.close()
        try:
            connection = self._pool.connect()
            connection.execute(f"LISTEN {_CHANNEL}".encode())
            self._connection = connection
            self._ring()
            self._is_heard = any(True for _ in connection.notifies(timeout=_RING_SECONDS_MAX, stop_after=1))
        except (DatabaseError, psycopg.Error) as error:
            self._connection, self._is_heard = None, False
            return str(error).partition("\n")[0]
        return None if self._is_heard else _UNHEARD

    def _report(self, failure: str | None) -> None:
        """Log when listening fails, and when it works again: until then work is found by looking for it. If the
        database does not answer at all, its caller says so."""
        if (failure is not None) == self._is_deaf:
            return
        self._is_deaf = failure is not None
        if failure is not None:
            log.warning("notifications of new work do not arrive, looking for it once a second: %s", failure)
        else:
            log.info("notifications of new work arrive again")

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._pipe is not None and os.read(self._pipe[0], 1024):
                pass
        connection = self._connection
        if connection is None:
            return
        if not _is_there(connection):
            connection.close()
            self._connection = None
            return
        while self._has_heard(connection):
            pass

    def _has_heard(self, connection: OwnConnection) -> bool:
        """Take the next notification; whether there was one. From then on the connection is known to hear."""
        if connection.pgconn.notifies() is None:
            return False
        self._is_heard = True
        return True


def _is_there(connection: OwnConnection) -> bool:
    """Whether the connection lives, by reading all that has come."""
    try:
        while not connection.closed and connection.incoming.poll(0):
            connection.pgconn.consume_input()
    except psycopg.Error:
        return False
    return not connection.closed
