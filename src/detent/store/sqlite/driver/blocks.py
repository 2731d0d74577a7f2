"""Commit blocks take turns in one write transaction, each under a savepoint, and share one sync.

A block that has ended hands the transaction to the next that stands in line; the last one writes the marks, commits for
all, and none returns before that. Nobody waits for company: while one group is synced, the next one gathers. A group
that is open for too long would keep everybody else from writing, renewals too: it is rolled back, whatever its block is
doing.
"""

from __future__ import annotations

import copy
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from detent.errors import DatabaseBusy, DatabaseError, DetentError, GuardViolation, OutcomeUnknown, WrongPlace
from detent.model.clock import SystemClock
from detent.store.sqlite.driver.executor import SqliteExecutor
from detent.store.sqlite.driver.failures import translated, translating
from detent.store.sqlite.driver.turnstile import FairLock
from detent.store.sqlite.driver.watch import Watch

if TYPE_CHECKING:
    from detent.store.sqlite.driver.database import Database

__all__ = ["Blocks", "Group", "Member"]

T = TypeVar("T")

_REAL = SystemClock()
_SAVEPOINT = "detent_block"
_OPEN_SECONDS_MAX = 5.0
_OPEN_SECONDS_MIN = 0.05
_JOIN_SECONDS_MAX = 0.05
_MEMBERS_MAX = 100
_INTERRUPT_EVERY = 0.05


class Member(Protocol):
    """What a block is to the engine. No two of one job wait for their marks; one that `sees_marks` decides on what the
    blocks before it have made of the jobs."""

    job_id: int
    sees_marks: bool

    def enter(self, executor: SqliteExecutor, seen: dict[int, Any], coming: list[int]) -> float:
        """Check, before anything is written: for how many seconds the block may be open. What is looked up for those
        that are `coming` too, and kept in `seen`, they need not look up: nobody else writes meanwhile."""
        ...

    def leave(self, executor: SqliteExecutor) -> bool:
        """The last to write. False where its mark may be written together with those of others, by `mark_all`."""
        ...

    def mark_all(self, executor: SqliteExecutor, members: list[Any]) -> None:
        """Write the marks of all these members of its own kind. What is raised fails the group."""
        ...


class _RolledBack(Exception):
    """There is nothing to commit."""


class Group:
    """One write transaction and the blocks in it. Everything here is decided under the connection's `hand`."""

    def __init__(self, database: Database, until: float) -> None:
        self._database = database
        self._transaction = database.writing(until)
        self.connection = self._transaction.__enter__()
        self.connection.lost = None
        self.executor = SqliteExecutor(self.connection)
        self.process = os.getpid()
        self.begun = _REAL.monotonic()
        self.members = 0
        self.in_body = False
        self.ended = False
        self.cut_off = False
        self.limited = False
        self.error: BaseException | None = None
        self.seen: dict[int, Any] = {}
        self._unmarked: dict[int, Member] = {}
        self._waiting: deque[threading.Lock] = deque()
        self._over = False

    @property
    def takes_more(self) -> bool:
        """Whoever joins late would have less time than the first."""
        return self.members < _MEMBERS_MAX and _REAL.monotonic() - self.begun < _JOIN_SECONDS_MAX

    def savepoint(self) -> None:
        """Where this member can be undone to. It is not released at the member's end but by the shared COMMIT: that
        saves a statement, and the last one of this name is always the current member's."""
        self.executor.change(f"SAVEPOINT {_SAVEPOINT}")

    def undo(self) -> None:
        """Take back what the current member wrote."""
        if self.connection.lost is None and self.connection.in_transaction:
            self.executor.change(f"ROLLBACK TO {_SAVEPOINT}")

    def joined(self, member: Member | None = None) -> None:
        """The current member has ended well. Without a member what was seen before holds no more; with one its mark is
        written later."""
        self.members += 1
        if member is None:
            self.seen.clear()
        else:
            self._unmarked[member.job_id] = member

    def is_unmarked(self, job_id: int) -> bool:
        """Whether a block of that job has ended here, and nobody can tell yet by looking at it."""
        return job_id in self._unmarked

    def mark(self) -> None:
        """Write the marks that are still to be written. Where that fails, so does the group: without its mark no block
        of it may stay."""
        if not self._unmarked:
            return
        members = list(self._unmarked.values())
        try:
            members[0].mark_all(self.executor, members)
            self._unmarked.clear()
            self.seen.clear()
        except BaseException as error:
            failed = DatabaseBusy(self._database.name, f"the marks of its group could not be written: {error}")
            self.end(failed)
            raise failed from error

    def end(self, error: BaseException | None = None) -> None:
        """Commit, or roll back where there is an error; every member learns of it."""
        self.ended = True
        self.connection.guard(False)
        try:
            if error is None and self.members:
                self._transaction.__exit__(None, None, None)
            else:
                nothing = _RolledBack()
                self._transaction.__exit__(_RolledBack, nothing, None)
        except BaseException as failure:
            error = error or failure
        self.error = error
        self._over = True
        self._tell_next()

    def expect(self) -> threading.Lock:
        """What will be released when the group is over. To be taken before anybody else can end it, and given to
        `outcome` or `forget`."""
        told = threading.Lock()
        told.acquire()
        self._waiting.append(told)
        return told

    def forget(self, told: threading.Lock) -> None:
        """Nobody waits for it any more. Where it was released meanwhile, the next one is still to be told."""
        with suppress(ValueError):
            self._waiting.remove(told)
        if self._over:
            self._tell_next()

    def outcome(self, told: threading.Lock | None = None) -> None:
        """Wait for the shared commit, where it is another's to make; raise what became of it."""
        if told is not None:
            come = False
            try:
                come = told.acquire(timeout=_OPEN_SECONDS_MAX + self._database.wait_seconds_max)
            finally:
                if come:
                    self._tell_next()
                else:
                    self.forget(told)
            if not self._over:
                raise OutcomeUnknown(self._database.name, "no answer from the commit that it shares with others")
        if self.error is not None:
            raise copy.copy(self.error) from self.error

    def _tell_next(self) -> None:
        """One tells the next: all at once, they would only wait for the interpreter's lock, and make everybody who
        lets go of it for a moment wait too."""
        try:
            self._waiting.popleft().release()
        except IndexError:
            return


class Blocks:
    """The line of blocks of one process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._line = FairLock()
        self._group: Group | None = None
        self._coming: dict[int, None] = {}
        self._watch = Watch(self._cut_off)

    def enter(self, member: Member) -> Group:
        """Wait for one's turn, check, and have the connection in the user's hands. To be followed by `leave` or
        `abandon`. Refuses what the member refuses, and with `DatabaseBusy` where the turn does not come in time."""
        self._coming[member.job_id] = None
        try:
            group = self._take_part()
        finally:
            self._coming.pop(member.job_id, None)
        connection, name = group.connection, self._database.name
        try:
            with connection.hand:
                if group.ended:
                    raise _busy(name)
                if member.sees_marks or group.is_unmarked(member.job_id):
                    group.mark()
                try:
                    seconds = member.enter(group.executor, group.seen, list(self._coming))
                    if not group.limited and not self._database.in_memory:
                        group.limited = True
                        bounded = max(_OPEN_SECONDS_MIN, min(_OPEN_SECONDS_MAX, seconds))
                        self._watch.over(group, group.begun + bounded)
                    group.savepoint()
                except sqlite3.Error as error:
                    raise translated(error, name) from error
                group.in_body = True
                connection.guard(True)
        except BaseException:
            self._leave_line(group)
            raise
        return group

    def leave(self, group: Group, member: Member) -> None:
        """The block has come to its end: durable when this returns. `DatabaseBusy` where another block of the group
        made the whole of it fail."""
        if os.getpid() != group.process:
            raise WrongPlace("the end of a commit block", "in a process forked inside it", "fork before the block")
        connection = group.connection
        try:
            with connection.hand:
                self._take_back(group)
                connection.check_lost()
                try:
                    connection.check_failed()
                    group.joined(None if member.leave(group.executor) else member)
                except BaseException:
                    group.undo()
                    raise
        except BaseException as error:
            self._leave_line(group)
            if isinstance(error, sqlite3.Error):
                raise translated(error, self._database.name) from error
            raise
        group.outcome(self._pass_on(group))

    def abandon(self, group: Group, error: BaseException) -> BaseException:
        """The block was left by an error: undo it. The error as it is to be raised."""
        if os.getpid() == group.process:
            try:
                with group.connection.hand:
                    self._take_back(group)
                    group.undo()
            finally:
                self._leave_line(group)
        if isinstance(error, sqlite3.Error):
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
                return _too_long(group)
            return _worlds(error, self._database.name) or error
        return error

    def join(self, work: Callable[[SqliteExecutor], T]) -> T:
        """The engine's own writing in the transaction of the blocks, where there is one: it shares their sync."""
        group = self._take_part()
        try:
            with group.connection.hand, translating(self._database.name):
                if group.ended:
                    raise _busy(self._database.name)
                # What it decides on is what the blocks before it have made of the jobs.
                group.mark()
                group.savepoint()
                try:
                    answer = work(group.executor)
                except BaseException:
                    group.undo()
                    raise
                group.joined()
        except BaseException:
            self._leave_line(group)
            raise
        group.outcome(self._pass_on(group))
        return answer

    @property
    def busy(self) -> bool:
        """Whether blocks are at work."""
        return self._line.held

    def _take_part(self) -> Group:
        wait, until = self._database.wait_seconds_max, self._database.wait_until()
        token = object()
        try:
            if not self._line.acquire(wait, token):
                raise DatabaseBusy(self._database.name, f"other commit blocks have been writing for {wait:g} s")
            group = self._group
            if group is not None:
                with group.connection.hand:
                    if not group.ended:
                        self._database.lend(threading.get_ident())
                        return group
            self._group = group = Group(self._database, until)
            return group
        except BaseException:
            self._line.release(token)
            raise

    def _take_back(self, group: Group) -> None:
        group.in_body = False
        if not group.cut_off:
            group.connection.guard(False)

    def _pass_on(self, group: Group) -> threading.Lock | None:
        """To the next in line, while the group is young; else it is committed here. What to wait for, if anything."""
        if self._line.waiting and self._may_pass_on(group):
            told = group.expect()
            # The last thing before this thread waits: the next one needs the interpreter's lock.
            if self._line.hand_over():
                return told
            group.forget(told)
        self._end(group)
        return None

    def _leave_line(self, group: Group) -> None:
        """The same for who has nothing to wait for."""
        if not (self._may_pass_on(group) and self._line.hand_over()):
            self._end(group)

    def _may_pass_on(self, group: Group) -> bool:
        with group.connection.hand:
            if group.ended or group.connection.lost is not None or not group.takes_more:
                return False
            self._database.lend(None)
            return True

    def _end(self, group: Group) -> None:
        connection = group.connection
        with connection.hand:
            if group.cut_off:
                # The line went on without this block; so did the database, on another connection.
                connection.guard(False)
                connection.close()
                return
            if not group.ended:
                self._database.lend(None)
                if connection.lost is not None:
                    group.end(_busy(self._database.name))
                else:
                    with suppress(DatabaseBusy):
                        group.mark()
                    if not group.ended:
                        group.end()
        self._line.release()

    def _cut_off(self, group: Group) -> None:
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


def _too_long(group: Group) -> WrongPlace:
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
