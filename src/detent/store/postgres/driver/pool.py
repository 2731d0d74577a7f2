"""A few connections, opened when first needed, that never cross a fork."""

from __future__ import annotations

import logging
import os
import select
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import Diagnostic
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from detent.errors import DatabaseBusy, DatabaseReadOnly
from detent.model.clock import SystemClock
from detent.store.postgres.driver.failures import no_connection
from detent.store.postgres.driver.line import Line

__all__ = ["Connection", "Pool", "PooledConnection"]

Connection = psycopg.Connection[TupleRow]

CONNECT_SECONDS_MAX = 10
RECONNECT_SECONDS_MAX = 2.0
"""How long the pool tries by itself, ever more rarely; after that every caller makes it try anew."""

LOOK_EVERY = 2.0
"""A pool that has lost its server gives up looking for it, and whoever waits then would wait to the end: so everybody
asks anew after so many seconds, and hears at once where there is nothing to be had."""

SILENCE: dict[str, int] = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""A server that is gone without a word is given up after ten seconds, not after the quarter of an hour that the system
would wait; unless the url says otherwise."""

_POOL_NAME = "detent"
_REAL = SystemClock()


class PooledConnection(psycopg.Connection[TupleRow]):
    """One of our pool's, told apart from those of a pool of the user's. `line` is the short way to its server, where
    nobody stands in between."""

    line: Line | None = None

    def forget(self) -> None:
        """Somebody has had it who may have changed its session: what was prepared may be gone."""
        if self.line is not None:
            self.line.forget()


def _is_of_another_pool(record: logging.LogRecord) -> bool:
    """What our pool logs of each failed connection its caller hears as an error, and says at a bounded rate (G6)."""
    about = record.args[0] if isinstance(record.args, tuple) and record.args else None
    return about != _POOL_NAME and not isinstance(about, PooledConnection)


logging.getLogger("psycopg.pool").addFilter(_is_of_another_pool)

_TOLD = "DT010"
"""What a function has to tell, beside its answer, about a limit."""


def hear(connection: Connection) -> None:
    """Let what functions tell come to the log."""
    connection.add_notice_handler(_log_notice)


def _log_notice(told: Diagnostic) -> None:
    if told.sqlstate == _TOLD:
        level = logging.WARNING if told.severity_nonlocalized == "WARNING" else logging.INFO
        logging.getLogger("detent.limits").log(level, "%s", told.message_primary)


class Pool:
    """Connections in autocommit, without session state: they may run through a transaction pooler. Statements are
    prepared only where none stands in between."""

    def __init__(self, url: str, name: str, *, size_max: int, wait_seconds_max: float) -> None:
        self._url = url
        self._name = name
        self._size_max = size_max
        self._wait_seconds_max = wait_seconds_max
        self._options: dict[str, Any] = {"autocommit": True, "prepare_threshold": None}
        given = conninfo_to_dict(url)
        self._options |= {name: value for name, value in SILENCE.items() if name not in given}
        if "connect_timeout" not in given:
            self._options["connect_timeout"] = CONNECT_SECONDS_MAX
        if "application_name" not in given:
            self._options["fallback_application_name"] = "detent"
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._pool: ConnectionPool[PooledConnection] | None = None
        self._living: weakref.WeakSet[PooledConnection] = weakref.WeakSet()
        self._made = 0

    @contextmanager
    def connection(self) -> Iterator[PooledConnection]:
        """One of the connections. `DatabaseUnreachable` where there is none to be had, `DatabaseBusy` where all are
        in use for too long."""
        pool, connection = self._taken()
        try:
            yield connection
        except (DatabaseReadOnly, psycopg.errors.ReadOnlySqlTransaction):
            # It leads to a server that takes no writes any more; a new one may lead to its successor.
            connection.close()
            raise
        finally:
            pool.putconn(connection)

    def connect(self) -> Connection:
        """A connection of its own, outside the pool. `DatabaseUnreachable`."""
        try:
            connection = psycopg.connect(self._url, **self._options)
        except psycopg.Error as error:
            raise no_connection(error, self._name) from error
        hear(connection)
        return connection

    def _taken(self) -> tuple[ConnectionPool[PooledConnection], PooledConnection]:
        deadline = _REAL.monotonic() + self._wait_seconds_max
        while True:
            pool = self._opened()
            try:
                return pool, pool.getconn(min(LOOK_EVERY, self._wait_seconds_max))
            except PoolClosed:
                continue  # somebody found it wanting, and there is a new one
            except PoolTimeout as error:
                self.connect().close()
                if self._renewed(pool):
                    continue
                if _REAL.monotonic() >= deadline:
                    raise DatabaseBusy(
                        self._name, f"all {self._size_max} connections of this process are in use"
                    ) from error

    def _renewed(self, pool: ConnectionPool[PooledConnection]) -> bool:
        """Whether the pool counts connections that are nobody's any more, and so was given up for a new one. An
        interrupt between two steps of lending loses one; those that are lent are closed when they come back."""
        stats = pool.get_stats()
        # One that is being made counts from its beginning, and a slow server takes long to give it: it is not lost.
        coming = max(0, stats.get("connections_num", 0) - stats.get("connections_errors", 0) - self._made)
        if stats["pool_size"] < self._size_max or stats["pool_size"] <= len(self._living) + coming:
            return False
        with self._lock:
            if self._pool is pool:
                self._pool = None
                self._living = weakref.WeakSet()
        pool.close()
        return True

    def close(self) -> None:
        """Let go of everything; the pool opens again when it is used again."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None and os.getpid() == self._pid:
            pool.close()

    def _take_in(self, connection: PooledConnection) -> None:
        self._living.add(connection)
        self._made += 1
        hear(connection)
        # A pooler gives numbers of its own to those who connect to it.
        found = connection.execute("SELECT pg_backend_pid()").fetchone()
        if found == (connection.info.backend_pid,):
            connection.line = Line(connection)

    def _opened(self) -> ConnectionPool[PooledConnection]:
        if os.getpid() != self._pid:
            self._begin()
        with self._lock:
            if self._pool is None:
                self.connect().close()  # says at once, and precisely, what the pool would only time out on
                self._made = 0
                pool = ConnectionPool(
                    self._url,
                    kwargs=self._options,
                    min_size=1,
                    max_size=self._size_max,
                    timeout=self._wait_seconds_max,
                    check=_check_unless_quiet,
                    configure=self._take_in,
                    open=True,
                    reconnect_timeout=RECONNECT_SECONDS_MAX,
                    name=_POOL_NAME,
                    connection_class=PooledConnection,
                )
                try:
                    pool.wait(CONNECT_SECONDS_MAX)
                except PoolTimeout as error:
                    pool.close()
                    raise DatabaseBusy(self._name, "it did not give a second connection in time") from error
                self._pool = pool
            return self._pool


def _check_unless_quiet(connection: Connection) -> None:
    """A connection that idles has nothing to read, unless its server went away meanwhile."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if poll.poll(0):
        ConnectionPool.check_connection(connection)
