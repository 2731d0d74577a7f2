"""A few connections, opened when first needed, that never cross a fork.

Whoever finds none at rest makes one, on its own thread; where there are as many as may be, callers stand in line, and
each one that comes back goes to the first of them. There is no thread that looks after them: one that rested for too
long, or is too old, is closed when another comes back.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import weakref
from collections import deque
from types import TracebackType
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import Diagnostic
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from detent.errors import DatabaseBusy, DatabaseError, DatabaseReadOnly
from detent.model.clock import SystemClock
from detent.store.postgres.driver.failures import no_connection
from detent.store.postgres.driver.line import Line

__all__ = ["Connection", "Lent", "Pool", "PooledConnection"]

Connection = psycopg.Connection[TupleRow]

CONNECT_SECONDS_MAX = 10
REST_SECONDS_MAX = 600.0
AGE_SECONDS_MAX = 3600.0
"""A process of the server's keeps what it has once read, and grows; and where servers share the work, a new one would
get none of it."""

LOOK_EVERY = 2.0
"""Seconds after which those in line look whether one was lost that is on nobody's hands. As long waits for one of the
others who could not make one, before it says so."""

SILENCE: dict[str, int] = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""A server that is gone without a word is given up after ten seconds, not after the quarter of an hour that the system
would wait; unless the url says otherwise."""

_REAL = SystemClock()


class _Place:
    """Room for one connection. Whoever makes one holds it, and the connection after that: where both are forgotten, by
    an interrupt between any two steps, there is room again."""

    __slots__ = ("__weakref__",)


class PooledConnection(psycopg.Connection[TupleRow]):
    """One of ours, told apart from those of the user's. `line` is the short way to its server, where nobody stands in
    between."""

    line: Line | None = None
    place: _Place | None = None
    news: select.poll
    made_at = 0.0
    rests_since = 0.0

    def forget(self) -> None:
        """Somebody has had it who may have changed its session: what was prepared may be gone."""
        if self.line is not None:
            self.line.forget()

    def is_quiet(self) -> bool:
        """One that rests has nothing to read, unless its server went away meanwhile."""
        return not self.closed and not self.news.poll(0)

    def is_alive(self) -> bool:
        """Where there is something to read, it is read."""
        if not self.is_quiet() and not self.closed:
            try:
                self.execute("")
            except psycopg.Error:
                self.close()
        return not self.closed

    def come_to_rest(self) -> None:
        """Nothing of what its last user began is left."""
        status = self.pgconn.transaction_status
        if status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            try:
                self.rollback()
            except psycopg.Error:
                self.close()
        elif status != TransactionStatus.IDLE:
            self.close()

    def is_worn(self, now: float) -> bool:
        """Whether nobody is to have it again."""
        return self.closed or now > self.made_at + AGE_SECONDS_MAX

    def __del__(self, *_: Any) -> None:
        """One that was forgotten is closed by libpq; psycopg would say so, which helps nobody."""


_TOLD = "DT010"
"""What a function has to tell, beside its answer, about a limit."""


def _log_notice(told: Diagnostic) -> None:
    if told.sqlstate == _TOLD:
        level = logging.WARNING if told.severity_nonlocalized == "WARNING" else logging.INFO
        logging.getLogger("detent.limits").log(level, "%s", told.message_primary)


class _Waiter:
    """One who stands in line: handed a connection, or told that there may be room for one."""

    __slots__ = ("connection", "told")

    def __init__(self) -> None:
        self.connection: PooledConnection | None = None
        self.told = threading.Lock()
        self.told.acquire()

    def tell(self) -> None:
        """By whoever has the pool's lock."""
        if self.told.locked():
            self.told.release()


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
        self._line: deque[_Waiter] = deque()
        self._renew()

    def _renew(self) -> None:
        self._resting: deque[PooledConnection] = deque()
        self._places: weakref.WeakSet[_Place] = weakref.WeakSet()

    def connection(self) -> Lent:
        """One of the connections, for the length of a block. `DatabaseUnreachable` where there is none to be had,
        `DatabaseBusy` where all are in use for too long."""
        return Lent(self)

    def connect(self) -> PooledConnection:
        """A connection of its own, outside the pool. `DatabaseUnreachable`."""
        try:
            connection = PooledConnection.connect(self._url, **self._options)
            connection.add_notice_handler(_log_notice)
            # A pooler gives numbers of its own to those who connect to it.
            found = connection.execute("SELECT pg_backend_pid()").fetchone()
        except psycopg.Error as error:
            raise no_connection(error, self._name) from error
        if found == (connection.info.backend_pid,):
            connection.line = Line(connection)
        connection.news = select.poll()
        connection.news.register(connection.fileno(), select.POLLIN)
        connection.made_at = _REAL.monotonic()
        return connection

    def close(self) -> None:
        """Let go of everything; the pool opens again when it is used again. What is lent is closed when it comes
        back."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            resting = self._resting
            self._renew()
        for connection in resting:
            connection.close()

    def take(self) -> PooledConnection:
        """One that is to be given back."""
        if os.getpid() != self._pid:
            self._begin()
        while True:
            connection = self._at_rest() or self._made_or_handed()
            if connection.is_alive():
                return connection
            self.give_back(connection)

    def take_at_rest(self) -> PooledConnection | None:
        """The same, where nobody has to be waited for: else none."""
        if os.getpid() != self._pid or (connection := self._at_rest()) is None:
            return None
        if connection.is_quiet():
            return connection
        self.give_back(connection)
        return None

    def give_back(self, connection: PooledConnection) -> None:
        """It goes to the first in line, or rests."""
        connection.come_to_rest()
        now = _REAL.monotonic()
        old: PooledConnection | None = None
        with self._lock:
            if connection.is_worn(now) or connection.place not in self._places:
                old = connection
                self._leave(connection.place)
            elif self._line:
                waiter = self._line.popleft()
                waiter.connection = connection
                waiter.tell()
            else:
                connection.rests_since = now
                self._resting.append(connection)
                if now > self._resting[0].rests_since + REST_SECONDS_MAX:
                    old = self._resting.popleft()
                    self._leave(old.place)
        if old is not None:
            old.close()

    def _at_rest(self) -> PooledConnection | None:
        """The one that was used last: those that nobody needs grow old."""
        with self._lock:
            return self._resting.pop() if self._resting and not self._line else None

    def _made_or_handed(self) -> PooledConnection:
        now = _REAL.monotonic()
        with self._lock:
            place = None if self._line else self._room()
        if place is None:
            in_use = DatabaseBusy(self._name, f"all {self._size_max} connections of this process are in use")
            return self._handed(now + self._wait_seconds_max, in_use)
        try:
            return self._made(place)
        except DatabaseError as error:
            if not self._places:
                raise
            # The server may have no room for one more: then one of those that are there will do.
            return self._handed(now + min(self._wait_seconds_max, LOOK_EVERY), error, makes=False)

    def _handed(self, until: float, refusal: DatabaseError, *, makes: bool = True) -> PooledConnection:
        """In line, until one comes back, or there is room to make one."""
        waiter = _Waiter()
        with self._lock:
            self._line.append(waiter)
        try:
            while (left := until - _REAL.monotonic()) > 0:
                waiter.told.acquire(timeout=min(left, LOOK_EVERY))
                with self._lock:
                    if waiter.connection is not None:
                        connection, waiter.connection = waiter.connection, None
                        return connection
                    place = self._room() if makes and self._line[0] is waiter else None
                if place is not None:
                    return self._made(place)
            raise refusal
        finally:
            with self._lock:
                if waiter in self._line:
                    self._line.remove(waiter)
                    self._tell_first()
            if waiter.connection is not None:
                self.give_back(waiter.connection)

    def _room(self) -> _Place | None:
        """Called with the lock held, as the two below."""
        if len(self._places) >= self._size_max:
            return None
        place = _Place()
        self._places.add(place)
        return place

    def _leave(self, place: _Place | None) -> None:
        if place is not None:
            self._places.discard(place)
        self._tell_first()

    def _tell_first(self) -> None:
        if self._line:
            self._line[0].tell()

    def _made(self, place: _Place) -> PooledConnection:
        try:
            connection = self.connect()
        except BaseException:
            with self._lock:
                self._leave(place)
            raise
        connection.place = place
        return connection


class Lent:
    """A connection for the length of a block; one that is taken by then, or that was taken before."""

    __slots__ = ("_connection", "_pool")

    def __init__(self, pool: Pool, connection: PooledConnection | None = None) -> None:
        self._pool = pool
        self._connection = connection

    def __enter__(self) -> PooledConnection:
        if self._connection is None:
            self._connection = self._pool.take()
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._connection is not None
        if isinstance(error, DatabaseReadOnly | psycopg.errors.ReadOnlySqlTransaction):
            # It leads to a server that takes no writes any more; a new one may lead to its successor.
            self._connection.close()
        self._pool.give_back(self._connection)
