"""A few connections, opened when first needed, that never cross a fork.

Whoever finds none at rest makes one, on its own thread; where there are as many as may be, callers stand in line, and
each one that comes back goes to the first of them. There is no thread that looks after them: one that rested for too
long, or is too old, is closed when another comes back.
"""

from __future__ import annotations

import logging
import math
import os
import select
import threading
import weakref
from collections import deque
from types import TracebackType
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import Diagnostic
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from detent.errors import DatabaseBusy, DatabaseError, DatabaseReadOnly
from detent.model.clock import SystemClock
from detent.store.postgres.driver.deadline import no_answer, seconds_left
from detent.store.postgres.driver.failures import no_connection
from detent.store.postgres.driver.line import Line

__all__ = ["Connection", "Pool", "PooledConnection", "Slot"]

Connection = psycopg.Connection[TupleRow]

CONNECT_SECONDS_MAX = 10
REST_SECONDS_MAX = 600.0
AGE_SECONDS_MAX = 3600.0
"""A process of the server's keeps what it has once read, and grows; and where servers share the work, a new one would
get none of it."""

LOOK_EVERY = 2.0
"""Seconds after which those in line look whether one was lost that is on nobody's hands. As long waits for one of the
others who could not make one, before it says so."""

READ_ONLY_SECONDS_MAX = 5.0
"""Seconds for which a connection to a server that takes no writes is used. A fresh one may lead to the new primary."""

SILENCE: dict[str, int] = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""A server that is gone without a word is given up after ten seconds, not after the quarter of an hour that the system
would wait; unless the url says otherwise."""

T = TypeVar("T")

_REAL = SystemClock()
_SIGNALS_EVERY = 0.1


class PooledConnection(psycopg.Connection[TupleRow]):
    """One of ours, told apart from those of the user's. `line` is the short way to its server, where nobody stands in
    between."""

    line: Line | None = None
    news: select.poll
    made_at = 0.0

    def wait(self, gen: PQGen[T], interval: float = _SIGNALS_EVERY, timeout: float | None = None) -> T:
        """Wait for the server, but no longer than this thread's deadline. A connection that misses it is closed."""
        if timeout is None and (timeout := seconds_left()) is not None:
            try:
                return super().wait(gen, interval, timeout)
            except psycopg.errors._WaitTimeout:
                self.close()
                raise no_answer() from None
        return super().wait(gen, interval, timeout)

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

    def leads_astray(self, now: float) -> bool:
        """Whether its server takes no writes, and the connection is not fresh. The server reports that with its
        answers, so no statement needs to fail first. A transaction pooler does not pass it on."""
        if self.closed or now < self.made_at + READ_ONLY_SECONDS_MAX:
            return False
        told = self.pgconn.parameter_status
        return told(b"in_hot_standby") == b"on" or told(b"default_transaction_read_only") == b"on"

    def __del__(self, *_: Any) -> None:
        """One that was forgotten is closed by libpq; psycopg would say so, which helps nobody."""


_TOLD = "DT010"
"""What a function has to tell, beside its answer, about a limit."""


def _log_notice(told: Diagnostic) -> None:
    if told.sqlstate == _TOLD:
        level = logging.WARNING if told.severity_nonlocalized == "WARNING" else logging.INFO
        logging.getLogger("detent.limits").log(level, "%s", told.message_primary)


class Slot:
    """Room for one connection, and the connection that is in it, for the length of a block. It rests in the pool or is
    in somebody's hands: forgotten by both, through an interrupt between any two steps, it is room again."""

    __slots__ = ("__weakref__", "_pool", "connection", "rests_since")

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.connection: PooledConnection
        self.rests_since = 0.0

    def __enter__(self) -> PooledConnection:
        return self.connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, DatabaseReadOnly | psycopg.errors.ReadOnlySqlTransaction):
            # It leads to a server that takes no writes any more; a new one may lead to its successor.
            self.connection.close()
            self._pool.distrust()
        elif isinstance(error and error.__cause__, psycopg.errors.ConnectionTimeout):
            # The others probably take the same way to the server.
            self._pool.distrust()
        self._pool.give_back(self)


class _Waiter:
    """One who stands in line: handed a connection, or told that there may be room for one."""

    __slots__ = ("slot", "told", "until")

    def __init__(self, until: float) -> None:
        self.until = until
        self.slot: Slot | None = None
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
        self._trusted_since = 0.0
        self._resting: deque[Slot] = deque()
        # Without a call when one dies: that would be Python, and an interrupt in its midst would be lost.
        self._slots: set[weakref.ref[Slot]] = set()

    def connection(self) -> Slot:
        """One of the connections, for the length of a block. `DatabaseUnreachable` where there is none to be had,
        `DatabaseBusy` where all are in use for too long."""
        if os.getpid() != self._pid:
            self._begin()
        while True:
            slot = self._at_rest() or self._made_or_handed()
            if slot.connection.is_alive():
                return slot
            self.give_back(slot)

    def connection_at_rest(self) -> Slot | None:
        """The same, where nobody has to be waited for: else none."""
        if os.getpid() != self._pid or (slot := self._at_rest()) is None:
            return None
        if slot.connection.is_quiet():
            return slot
        self.give_back(slot)
        return None

    def connect(self) -> PooledConnection:
        """A connection of its own, outside the pool. `DatabaseUnreachable`."""
        options = self._options
        if "connect_timeout" in options and (left := seconds_left()) is not None:
            options = {**options, "connect_timeout": min(options["connect_timeout"], math.ceil(left))}
        try:
            connection = PooledConnection.connect(self._url, **options)
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
        for slot in resting:
            slot.connection.close()

    def distrust(self) -> None:
        """Drop every connection made before now: those at rest at once, those in use when they come back."""
        with self._lock:
            self._trusted_since = _REAL.monotonic()
            resting, self._resting = self._resting, deque()
            self._slots.difference_update(weakref.ref(slot) for slot in resting)
            self._tell_first()
        for slot in resting:
            slot.connection.close()

    def trusts(self, connection: PooledConnection) -> bool:
        """Whether no other connection has shown, since this one was made, that it may lead nowhere."""
        return connection.made_at > self._trusted_since

    def give_back(self, slot: Slot) -> None:
        """It goes to the first in line, or rests."""
        slot.connection.come_to_rest()
        now = _REAL.monotonic()
        if slot.connection.leads_astray(now):
            self.distrust()
        old: Slot | None = None
        with self._lock:
            is_worn = slot.connection.is_worn(now) or not self.trusts(slot.connection)
            if is_worn or weakref.ref(slot) not in self._slots:
                old = slot
            elif (waiter := self._first()) is not None:
                waiter.slot = slot
                self._line.popleft()
                waiter.tell()
            else:
                slot.rests_since = now
                self._resting.append(slot)
                if now > self._resting[0].rests_since + REST_SECONDS_MAX:
                    old = self._resting.popleft()
            if old is not None:
                self._leave(old)
        if old is not None:
            old.connection.close()

    def _at_rest(self) -> Slot | None:
        """The one that was used last: those that nobody needs grow old."""
        with self._lock:
            return self._resting.pop() if self._resting and self._first() is None else None

    def _made_or_handed(self) -> Slot:
        now = _REAL.monotonic()
        wait_max = self._wait_seconds_max
        if (left := seconds_left()) is not None:
            wait_max = min(wait_max, left)
        with self._lock:
            slot = self._room() if self._first() is None else None
        if slot is None:
            in_use = DatabaseBusy(self._name, f"all {self._size_max} connections of this process are in use")
            return self._handed(now + wait_max, in_use)
        try:
            return self._made(slot)
        except DatabaseError as error:
            if not self._slots:
                raise
            # The server may have no room for one more: then one of those that are there will do.
            return self._handed(now + min(wait_max, LOOK_EVERY), error, makes=False)

    def _handed(self, until: float, refusal: DatabaseError, *, makes: bool = True) -> Slot:
        """In line, until one comes back, or there is room to make one."""
        waiter = _Waiter(until)
        try:
            with self._lock:
                self._line.append(waiter)
            while (left := until - _REAL.monotonic()) > 0:
                waiter.told.acquire(timeout=min(left, LOOK_EVERY))
                with self._lock:
                    if waiter.slot is not None:
                        slot, waiter.slot = waiter.slot, None
                        return slot
                    if waiter not in self._line:
                        self._line.appendleft(waiter)  # whoever called it was interrupted
                    room = self._room() if makes and self._first() is waiter else None
                    if room is not None:
                        self._line.popleft()
                        self._tell_first()
                if room is not None:
                    return self._made(room)
            raise refusal
        finally:
            with self._lock:
                if waiter in self._line:
                    self._line.remove(waiter)
                    self._tell_first()
            if waiter.slot is not None:
                self.give_back(waiter.slot)

    def _first(self) -> _Waiter | None:
        """Who stands first in line, and is not one who was interrupted on its way out of it. Called with the lock held,
        as the three below."""
        while self._line and _REAL.monotonic() > self._line[0].until + LOOK_EVERY:
            self._line.popleft()
        return self._line[0] if self._line else None

    def _room(self) -> Slot | None:
        if len(self._slots) >= self._size_max:
            self._slots = {slot for slot in self._slots if slot() is not None}
            if len(self._slots) >= self._size_max:
                return None
        slot = Slot(self)
        self._slots.add(weakref.ref(slot))
        return slot

    def _leave(self, slot: Slot) -> None:
        self._slots.discard(weakref.ref(slot))
        self._tell_first()

    def _tell_first(self) -> None:
        if (waiter := self._first()) is not None:
            waiter.tell()

    def _made(self, slot: Slot) -> Slot:
        try:
            slot.connection = self.connect()
        except BaseException:
            with self._lock:
                self._leave(slot)
            raise
        return slot
