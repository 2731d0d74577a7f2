"""Wait for work on PostgreSQL: LISTEN on a connection of its own, and a row that says that a worker waits.

An enqueue sends a NOTIFY only while the row is set, and the first one clears it: without a waiter there is no NOTIFY,
which would make commits queue up behind one another. A notification may be lost (a pooler, a restart, a race), so a
waiter looks for work again after its time.
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
_PROBE_SECONDS_MAX = 1.0
_NOT_RECEIVED = "the server accepts LISTEN, but there may be a transaction pooler in between"


class PostgresWake:
    """One listening connection, opened at the first wait. Without it, waiters poll."""

    def __init__(
        self, pool: ConnectionPool, name: str, announce: Callable[[float], None], notify: Callable[[], None]
    ) -> None:
        self._pool = pool
        self._name = name
        self._announce = announce
        self._notify = notify
        self._receives = False
        self._has_failed = False
        self._connection: OwnConnection | None = None
        self._pipe: tuple[int, int] | None = None
        self._pid = os.getpid()

    @property
    def is_sure(self) -> bool:
        """Whether the listening connection has received a notification that was sent on another. A transaction pooler
        accepts LISTEN, but passes on no notification."""
        return self._receives and self._connection is not None and not self._connection.closed

    def version(self, timeout: float = 2.0) -> int:
        """Record that a worker is about to wait. Earlier notifications are dropped."""
        if os.getpid() != self._pid:
            self._connection = self._pipe = None
            self._pid = os.getpid()
        if self._pipe is None:
            self._pipe = os.pipe()
            for end in self._pipe:
                os.set_blocking(end, False)
        # Reading shows whether the connection is lost.
        self._drain()
        failure = self._listen()
        self._announce(2 * timeout + 1.0)
        self._report(failure)
        return 0

    def wait(self, version: int, timeout: float) -> bool:
        """Wait for a notification, an interrupt, or the end of the time. What has arrived is read before the next wait:
        now there is work to do."""
        connection = self._connection
        if connection is not None and (connection.closed or self._take_notification(connection)):
            return True  # it was lost, or the notification was read with something else
        watched = select.poll()
        if self._pipe is not None:
            watched.register(self._pipe[0], select.POLLIN)
        if connection is not None and not connection.closed:
            watched.register(connection.fileno(), select.POLLIN)
        return bool(watched.poll(int(timeout * 1000)))

    def prepare(self, statement: Statement[T], run: Callable[[Statement[T]], T]) -> Callable[[], T]:
        """Prepare a statement on the listening connection. The function returned sends it there if a notification has
        arrived: the server process of that connection is awake. Otherwise it uses `run`."""
        connection = self._connection
        if connection is None or connection.direct is None:
            return partial(run, statement)
        try:
            ask = connection.direct.prepare_fetch(statement.sql, statement.params)
        except psycopg.Error:
            return partial(run, statement)

        def send() -> T:
            if not _is_alive(connection) or not self._take_notification(connection):
                return run(statement)
            with translating(self._name, committing=True):
                return statement.decode(ask())

        return send

    def interrupt(self) -> None:
        """End the wait of this process."""
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

    def _listen(self) -> str | None:
        """Listen, unless it does already. Return why notifications do not arrive, if they do not."""
        if self._connection is not None and not self._connection.closed:
            if self._pool.is_valid(self._connection):
                return None if self._receives else _NOT_RECEIVED
            self._connection.close()
        try:
            connection = self._pool.connect()
            connection.execute(f"LISTEN {_CHANNEL}".encode())
            self._connection = connection
            self._notify()
            self._receives = any(True for _ in connection.notifies(timeout=_PROBE_SECONDS_MAX, stop_after=1))
        except (DatabaseError, psycopg.Error) as error:
            self._connection, self._receives = None, False
            return str(error).partition("\n")[0]
        return None if self._receives else _NOT_RECEIVED

    def _report(self, failure: str | None) -> None:
        """Log when notifications stop to arrive, and when they arrive again; in between, waiters poll. If the database
        does not answer at all, the caller logs that."""
        if (failure is not None) == self._has_failed:
            return
        self._has_failed = failure is not None
        if failure is not None:
            # The log limit counts it with the other reports of an unavailable database.
            cause = None if failure == _NOT_RECEIVED else {"cause": "database"}
            log.warning("notifications of new work do not arrive, polling once a second: %s", failure, extra=cause)
        else:
            log.info("notifications of new work arrive again")

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._pipe is not None and os.read(self._pipe[0], 1024):
                pass
        connection = self._connection
        if connection is None:
            return
        if not _is_alive(connection):
            connection.close()
            self._connection = None
            return
        while self._take_notification(connection):
            pass

    def _take_notification(self, connection: OwnConnection) -> bool:
        """Take the next notification. Return whether there was one; from then on the connection is known to receive."""
        if connection.pgconn.notifies() is None:
            return False
        self._receives = True
        return True


def _is_alive(connection: OwnConnection) -> bool:
    """Read all that has arrived. Return whether the connection is alive."""
    try:
        while not connection.closed and connection.incoming.poll(0):
            connection.pgconn.consume_input()
    except psycopg.Error:
        return False
    return not connection.closed
