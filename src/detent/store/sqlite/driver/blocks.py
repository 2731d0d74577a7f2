"""Commit blocks take turns in one write transaction, each under a savepoint, and share one sync.

A block that has ended hands the transaction to the next that stands in line; the last one commits for all, and none
returns before that. Nobody waits for company: while one group is synced, the next one gathers. A group that is open for
too long would keep everybody else from writing, renewals too: it is rolled back, whatever its block is doing.
"""

from __future__ import annotations

import copy
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from detent.errors import DatabaseBusy, DatabaseError, DetentError, GuardViolation, OutcomeUnknown, WrongPlace
from detent.model.clock import SystemClock
from detent.store.sqlite.driver.failures import translated, translating
from detent.store.sqlite.driver.guarded import GuardedConnection
from detent.store.sqlite.driver.turnstile import FairLock

if TYPE_CHECKING:
    from detent.store.sqlite.driver.database import Database

__all__ = ["Blocks"]

_REAL = SystemClock()
_SAVEPOINT = "detent_block"
_OPEN_SECONDS_MAX = 5.0
_OPEN_SECONDS_MIN = 0.05
_JOIN_SECONDS_MAX = 0.05
_INTERRUPT_EVERY = 0.05


class _RolledBack(Exception):
    """There is nothing to commit."""


class _Group:
    """One write transaction and the blocks in it. Everything here is decided under the connection's `hand`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._transaction = database.writing()
        self.connection = self._transaction.__enter__()
        self.connection.lost = None
        self.process = os.getpid()
        self.begun = _REAL.monotonic()
        self.members = 0
        self.in_body = False
        self.ended = False
        self.cut_off = False
        self._timer: threading.Timer | None = None
        self._over = threading.Event()
        self._error: BaseException | None = None

    @property
    def takes_more(self) -> bool:
        """Whoever joins late would have less time than the first."""
        return _REAL.monotonic() - self.begun < _JOIN_SECONDS_MAX

    def limit(self, seconds: float, act: Callable[[], None]) -> None:
        """`act`, where the group is still open after so many seconds."""
        if self._timer is None and not self._database.in_memory:
            bounded = max(_OPEN_SECONDS_MIN, min(_OPEN_SECONDS_MAX, seconds))
            self._timer = threading.Timer(bounded, act)
            self._timer.daemon = True
            self._timer.start()

    def end(self, error: BaseException | None = None) -> None:
        """Commit, or roll back where there is an error; every member learns of it."""
        self.ended = True
        if self._timer is not None:
            self._timer.cancel()
        self.connection.guard(False)
        try:
            if error is None and self.members:
                self._transaction.__exit__(None, None, None)
            else:
                nothing = _RolledBack()
                self._transaction.__exit__(_RolledBack, nothing, None)
        except BaseException as failure:
            error = error or failure
        self._error = error
        self._over.set()

    def outcome(self, patience: float) -> None:
        """Wait for the shared commit; raise what became of it."""
        if not self._over.wait(patience):
            raise OutcomeUnknown(self._database.name, "no answer from the commit that this block shares with others")
        if self._error is not None:
            raise copy.copy(self._error) from self._error


class Blocks:
    """The line of blocks of one process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._line = FairLock()
        self._group: _Group | None = None

    @contextmanager
    def block(
        self, enter: Callable[[GuardedConnection], float], leave: Callable[[GuardedConnection], None]
    ) -> Iterator[GuardedConnection]:
        """`enter` checks, and says for how many seconds the block may be open; `leave` is the last to write.

        Durable when it returns. What is raised inside undoes this block alone; `DatabaseBusy` where another block of
        the group made the whole of it fail.
        """
        wait = self._database.wait_seconds_max
        if not self._line.acquire(wait):
            raise DatabaseBusy(self._database.name, f"other commit blocks have been writing for {wait:g} s")
        try:
            group = self._take_part()
        except BaseException:
            self._line.release()
            raise
        try:
            with self._one(group, enter, leave) as connection:
                yield connection
        finally:
            if os.getpid() == group.process:
                self._pass_on(group)
        group.outcome(_OPEN_SECONDS_MAX + wait)

    def _take_part(self) -> _Group:
        group = self._group
        if group is not None:
            with group.connection.hand:
                if not group.ended:
                    self._database.lend(threading.get_ident())
                    return group
        self._group = group = _Group(self._database)
        return group

    @contextmanager
    def _one(
        self, group: _Group, enter: Callable[[GuardedConnection], float], leave: Callable[[GuardedConnection], None]
    ) -> Iterator[GuardedConnection]:
        connection, name = group.connection, self._database.name
        with connection.hand, translating(name):
            if group.ended:
                raise _busy(name)
            group.limit(enter(connection), lambda: self._cut_off(group))
            connection.execute(f"SAVEPOINT {_SAVEPOINT}")
            group.in_body = True
            connection.guard(True)
        try:
            yield connection
        except BaseException as error:
            if os.getpid() == group.process:
                with connection.hand:
                    self._take_back(group)
                    _undo(connection)
            if isinstance(error, sqlite3.Error):
                if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
                    raise _too_long(group) from error
                if (own := _worlds(error, name)) is not None:
                    raise own from error
            raise
        if os.getpid() != group.process:
            raise WrongPlace("the end of a commit block", "in a process forked inside it", "fork before the block")
        with connection.hand, translating(name):
            self._take_back(group)
            connection.check_lost()
            try:
                connection.check_failed()
                leave(connection)
                connection.execute(f"RELEASE {_SAVEPOINT}")
            except BaseException:
                _undo(connection)
                raise
            group.members += 1

    def _take_back(self, group: _Group) -> None:
        group.in_body = False
        if not group.cut_off:
            group.connection.guard(False)

    def _pass_on(self, group: _Group) -> None:
        """To the next in line, while the group is young; else it is committed here."""
        connection = group.connection
        with connection.hand:
            if group.cut_off:
                # The line went on without this block; so did the database, on another connection.
                connection.guard(False)
                connection.close()
                return
            if not group.ended:
                if connection.lost is not None:
                    group.end(_busy(self._database.name))
                else:
                    self._database.lend(None)
                    if group.takes_more and self._line.hand_over():
                        return
                    group.end()
        self._line.release()

    def _cut_off(self, group: _Group) -> None:
        """The group's time is over: roll it back, whatever its block is doing, and let others write."""
        connection, name = group.connection, self._database.name
        while not connection.hand.acquire(timeout=_INTERRUPT_EVERY):
            if group.in_body:
                connection.interrupt()
        try:
            if group.ended or group.process != os.getpid():
                return
            connection.lost = _too_long(group)
            group.cut_off = group.in_body
            if group.cut_off:
                self._database.drop_writer()
            connection.speak_for_engine()
            group.end(_busy(name))
            if group.cut_off:
                connection.guard(True)
                self._line.release()
        finally:
            connection.hand.release()


def _undo(connection: GuardedConnection) -> None:
    if connection.lost is None and connection.in_transaction:
        connection.execute(f"ROLLBACK TO {_SAVEPOINT}")
        connection.execute(f"RELEASE {_SAVEPOINT}")


def _too_long(group: _Group) -> WrongPlace:
    """The block's own fault, so its attempt counts: to be repeated as it is would not help."""
    return WrongPlace(
        "a commit block",
        f"that is open for more than {_REAL.monotonic() - group.begun:.2g} s on SQLite",
        "prepare before the block: nobody else can write while it is open",
    )


def _busy(name: str) -> DatabaseBusy:
    return DatabaseBusy(name, "another commit block ended the transaction that this one shared with it")


def _worlds(error: sqlite3.Error, name: str) -> DetentError | None:
    """The error as Detent's where the world is to blame; what is wrong with the user's own statement stays as it is."""
    found = translated(error, name)
    return None if type(found) in (DatabaseError, GuardViolation) else found
