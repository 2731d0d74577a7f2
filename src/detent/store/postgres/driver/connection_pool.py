"""A pool of connections, opened when first needed, that never cross a fork.

A caller takes an idle connection, or opens one on its own thread. If the pool is full, callers wait in order. The pool
has no thread: a connection that was idle for too long or is too old is closed when another one comes back.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from types import TracebackType

import psycopg

from detent.errors import DatabaseBusy, DatabaseError, DatabaseReadOnly
from detent.model.clock import SystemClock
from detent.store.postgres.driver.connection import OwnConnection, connection_options
from detent.store.postgres.driver.deadline import seconds_left

__all__ = ["ConnectionPool", "Slot"]

IDLE_SECONDS_MAX = 600.0

RECHECK_SECONDS = 2.0
"""Waiters look this often for slots that an interrupt has lost. A caller that could not connect waits as long for one
of the other connections."""

_CLOCK = SystemClock()


class Slot:
    """One connection of the pool, as a context manager. The pool holds it while it is idle, a caller while it is lent.
    If both lose it (an interrupt can come between any two steps), it is garbage, and the pool may open another."""

    __slots__ = ("__weakref__", "_pool", "connection", "idle_since")

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self.connection: OwnConnection
        self.idle_since = 0.0

    def __enter__(self) -> OwnConnection:
        return self.connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, DatabaseReadOnly | psycopg.errors.ReadOnlySqlTransaction):
            self.connection.close()
            self._pool.expire_all()  # new connections may reach the new primary
        elif isinstance(error and error.__cause__, psycopg.errors.ConnectionTimeout):
            self._pool.expire_all()  # the others probably use the same network path
        self._pool.give_back(self)


class ConnectionPool:
    """Connections in autocommit, without session state: they may run through a transaction pooler."""

    def __init__(self, url: str, name: str, *, size_max: int, wait_seconds_max: float) -> None:
        self._url = url
        self._name = name
        self._size_max = size_max
        self._wait_seconds_max = wait_seconds_max
        self._options = connection_options(url)
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._waiters: dict[threading.Lock, float] = {}  # each with its deadline, in order; released to wake it
        self._idle: deque[Slot] = deque()
        self._slots: set[weakref.ref[Slot]] = set()  # without callbacks: an interrupt inside one would be lost
        self._valid_after = 0.0

    def connection(self) -> Slot:
        """Lend a connection for a `with` block. Raises `DatabaseUnreachable`, or `DatabaseBusy` if all are in use."""
        if os.getpid() != self._pid:
            self._start()
        while True:
            slot = self._take_idle() or self._open_or_wait()
            if slot.connection.is_alive():
                return slot
            self.give_back(slot)

    def idle_connection(self) -> Slot | None:
        """Lend an idle connection; None if there is none that can be used at once."""
        if os.getpid() != self._pid or (slot := self._take_idle()) is None:
            return None
        if slot.connection.is_quiet():
            return slot
        self.give_back(slot)
        return None

    def connect(self) -> OwnConnection:
        """Open a connection outside the pool. Raises `DatabaseUnreachable`."""
        return OwnConnection.open(self._url, self._name, self._options)

    def give_back(self, slot: Slot) -> None:
        """Make a lent connection idle, or close it if it should not be used again."""
        connection, expired = slot.connection, None
        connection.reset()
        now = _CLOCK.monotonic()
        if connection.is_read_only(now):
            self.expire_all()
        with self._lock:
            if weakref.ref(slot) not in self._slots or connection.is_expired(now) or not self.is_valid(connection):
                expired = slot
            else:
                slot.idle_since = now
                self._idle.append(slot)
                if now > self._idle[0].idle_since + IDLE_SECONDS_MAX:
                    expired = self._idle.popleft()
            if expired is not None:
                self._slots.discard(weakref.ref(expired))
            self._wake_first()
        if expired is not None:
            expired.connection.close()

    def is_valid(self, connection: OwnConnection) -> bool:
        """Return whether the connection was opened after the last `expire_all`."""
        return connection.opened_at > self._valid_after

    def expire_all(self) -> None:
        """Drop every connection opened before now: idle ones at once, lent ones when they come back."""
        with self._lock:
            self._valid_after = _CLOCK.monotonic()
            idle, self._idle = self._idle, deque()
            self._slots.difference_update(weakref.ref(slot) for slot in idle)
            self._wake_first()
        for slot in idle:
            slot.connection.close()

    def close(self) -> None:
        """Close idle connections at once and lent ones when they come back. The pool can be used again."""
        if os.getpid() == self._pid:
            self.expire_all()
            with self._lock:
                self._slots.clear()

    def _take_idle(self) -> Slot | None:
        """Take the slot that was used last, so that connections that are not needed expire. Waiters come first."""
        with self._lock:
            if self._idle and (not self._waiters or self._first_waiter() is None):
                return self._idle.pop()
            return None

    def _open_or_wait(self) -> Slot:
        now, left = _CLOCK.monotonic(), seconds_left()
        wait_max = self._wait_seconds_max if left is None else min(self._wait_seconds_max, left)
        with self._lock:
            slot = self._new_slot() if self._first_waiter() is None else None
        if slot is None:
            in_use = DatabaseBusy(self._name, f"all {self._size_max} connections of this process are in use")
            return self._wait(now + wait_max, in_use)
        try:
            return self._open(slot)
        except DatabaseError as error:
            if not self._slots:
                raise
            # The server may be full: wait for one of the connections that exist.
            return self._wait(now + min(wait_max, RECHECK_SECONDS), error, may_open=False)

    def _wait(self, deadline: float, refusal: DatabaseError, *, may_open: bool = True) -> Slot:
        """Wait in order for an idle slot, or for room to open a connection."""
        waiter, room = threading.Lock(), None
        waiter.acquire()
        try:
            with self._lock:
                self._waiters[waiter] = deadline
            while room is None:
                if (left := deadline - _CLOCK.monotonic()) <= 0:
                    raise refusal
                waiter.acquire(timeout=min(left, RECHECK_SECONDS))
                with self._lock:
                    if self._first_waiter() is waiter:
                        if self._idle:
                            return self._idle.pop()
                        room = self._new_slot() if may_open else None
        finally:
            with self._lock:
                self._waiters.pop(waiter, None)
                self._wake_first()
        return self._open(room)

    def _open(self, slot: Slot) -> Slot:
        try:
            slot.connection = self.connect()
        except BaseException:
            with self._lock:
                self._slots.discard(weakref.ref(slot))
                self._wake_first()
            raise
        return slot

    # The caller of these holds the lock.

    def _new_slot(self) -> Slot | None:
        if len(self._slots) >= self._size_max:
            self._slots = {slot for slot in self._slots if slot() is not None}
            if len(self._slots) >= self._size_max:
                return None
        slot = Slot(self)
        self._slots.add(weakref.ref(slot))
        return slot

    def _first_waiter(self) -> threading.Lock | None:
        """Return the first waiter. Drop those whose deadline has passed: an interrupt may have kept one in here."""
        while (first := next(iter(self._waiters), None)) is not None:
            if _CLOCK.monotonic() <= self._waiters[first] + RECHECK_SECONDS:
                return first
            del self._waiters[first]
        return None

    def _wake_first(self) -> None:
        if (waiter := self._first_waiter()) is not None and waiter.locked():
            waiter.release()
