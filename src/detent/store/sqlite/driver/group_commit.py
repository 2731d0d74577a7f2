"""Group commit: commit blocks take turns in one write transaction, each under a savepoint, and share one sync.

A block that ends passes the transaction to the next waiting block. The last one writes the marks and commits for all;
no block returns before that. Blocks do not wait for a group to form: while one group is synced, the next one gathers.
A group that is open for too long would keep all others from writing, lease renewals too. It is rolled back, whatever
its block is doing.
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
from detent.store.sqlite.driver.transaction_timer import TransactionTimer
from detent.store.sqlite.driver.write_lock import FairLock

if TYPE_CHECKING:
    from detent.store.sqlite.driver.database import Database

__all__ = ["CommitGroup", "GroupCommit", "Member"]

T = TypeVar("T")

_CLOCK = SystemClock()
_SAVEPOINT = "detent_block"
_OPEN_SECONDS_MAX = 5.0
_OPEN_SECONDS_MIN = 0.05
_JOIN_SECONDS_MAX = 0.05
_MEMBERS_MAX = 100
_INTERRUPT_EVERY = 0.05


class Member(Protocol):
    """A block as a member of a group. At most one block of a job waits for its mark. Before a block that `sees_marks`
    begins, the marks of earlier blocks are written."""

    job_id: int
    sees_marks: bool

    def enter(self, executor: SqliteExecutor, seen: dict[int, Any], coming: list[int]) -> float:
        """Check before anything is written. Return for how many seconds the block may be open. `seen` keeps what was
        read for this job and the jobs that are `coming`: it stays valid, since nothing else writes."""
        ...

    def leave(self, executor: SqliteExecutor) -> bool:
        """Write what ends the block. Return False if its mark may be written together with others, by `mark_all`."""
        ...

    def mark_all(self, executor: SqliteExecutor, members: list[Any]) -> None:
        """Write the marks of these members, which are of its own kind. An error fails the group."""
        ...


class _RolledBack(Exception):
    """Rolls the transaction back without an error."""


class CommitGroup:
    """One write transaction and the blocks in it. Its state changes only under the connection's `lock`."""

    def __init__(self, database: Database, until: float) -> None:
        self._database = database
        self._transaction = database.writing(until)
        self.connection = self._transaction.__enter__()
        self.connection.lost = None
        self.executor = SqliteExecutor(self.connection)
        self.process = os.getpid()
        self.begun = _CLOCK.monotonic()
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
        """Whether another block may join: one that joins late has less time than the first."""
        return self.members < _MEMBERS_MAX and _CLOCK.monotonic() - self.begun < _JOIN_SECONDS_MAX

    def savepoint(self) -> None:
        """Set the savepoint of the current member. The shared COMMIT releases it, which saves a statement: the last
        one of this name is always the current member's."""
        self.executor.change(f"SAVEPOINT {_SAVEPOINT}")

    def undo(self) -> None:
        """Roll back what the current member wrote."""
        if self.connection.lost is None and self.connection.in_transaction:
            self.executor.change(f"ROLLBACK TO {_SAVEPOINT}")

    def add(self, member: Member | None = None) -> None:
        """Count the current member, which has ended well. With `member`, its mark is written later. Without, `seen` is
        no longer valid."""
        self.members += 1
        if member is None:
            self.seen.clear()
        else:
            self._unmarked[member.job_id] = member

    def is_unmarked(self, job_id: int) -> bool:
        """Return whether a block of this job has ended in this group and its mark is not written yet."""
        return job_id in self._unmarked

    def mark(self) -> None:
        """Write the pending marks. If that fails, the group fails: no block may be committed without its mark."""
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
        """Commit; roll back if there is an error. Every member gets the outcome."""
        self.ended = True
        self.connection.take_back()
        try:
            if error is None and self.members:
                self._transaction.__exit__(None, None, None)
            else:
                self._transaction.__exit__(_RolledBack, _RolledBack(), None)
        except BaseException as failure:
            error = error or failure
        self.error = error
        self._over = True
        self._wake_next()

    def expect(self) -> threading.Lock:
        """Return a lock that is released when the group has ended. Call it before another thread can end the group,
        and pass it to `outcome` or `forget`."""
        told = threading.Lock()
        told.acquire()
        self._waiting.append(told)
        return told

    def forget(self, told: threading.Lock) -> None:
        """Stop waiting. If the group has ended in the meantime, wake the next waiter."""
        with suppress(ValueError):
            self._waiting.remove(told)
        if self._over:
            self._wake_next()

    def outcome(self, told: threading.Lock | None = None) -> None:
        """Wait for the shared commit, if another member makes it. Raises the error of the group."""
        if told is not None:
            woken = False
            try:
                woken = told.acquire(timeout=_OPEN_SECONDS_MAX + self._database.wait_seconds_max)
            finally:
                if woken:
                    self._wake_next()
                else:
                    self.forget(told)
            if not self._over:
                raise OutcomeUnknown(self._database.name, "no answer from the commit that it shares with others")
        if self.error is not None:
            raise copy.copy(self.error) from self.error

    def _wake_next(self) -> None:
        """Each waiter wakes the next. If all woke at once, they would compete for the interpreter's lock."""
        try:
            self._waiting.popleft().release()
        except IndexError:
            return


class GroupCommit:
    """The queue of commit blocks of one process, and their current group."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue = FairLock()
        self._group: CommitGroup | None = None
        self._coming: dict[int, None] = {}
        self._timer = TransactionTimer(self._cut_off)

    def enter(self, member: Member) -> CommitGroup:
        """Wait, check, and lend the connection to the user. The caller calls `leave` or `abandon` afterwards. Raises
        what the member raises, and `DatabaseBusy` if the wait is too long."""
        self._coming[member.job_id] = None
        try:
            group = self._join_group()
        finally:
            self._coming.pop(member.job_id, None)
        connection, name = group.connection, self._database.name
        try:
            with connection.lock:
                if group.ended:
                    raise _busy(name)
                if member.sees_marks or group.is_unmarked(member.job_id):
                    group.mark()
                try:
                    seconds = member.enter(group.executor, group.seen, list(self._coming))
                    if not group.limited and not self._database.in_memory:
                        group.limited = True
                        bounded = max(_OPEN_SECONDS_MIN, min(_OPEN_SECONDS_MAX, seconds))
                        self._timer.watch(group, group.begun + bounded)
                    group.savepoint()
                except sqlite3.Error as error:
                    raise translated(error, name) from error
                group.in_body = True
                connection.lend()
        except BaseException:
            self._leave_queue(group)
            raise
        return group

    def leave(self, group: CommitGroup, member: Member) -> None:
        """End the block. It is durable when this returns. Raises `DatabaseBusy` if another block made the group
        fail."""
        if os.getpid() != group.process:
            raise WrongPlace("the end of a commit block", "in a process forked inside it", "fork before the block")
        connection = group.connection
        try:
            with connection.lock:
                self._take_back(group)
                connection.check_lost()
                try:
                    connection.check_failed()
                    group.add(None if member.leave(group.executor) else member)
                except BaseException:
                    group.undo()
                    raise
        except BaseException as error:
            self._leave_queue(group)
            if isinstance(error, sqlite3.Error):
                raise translated(error, self._database.name) from error
            raise
        group.outcome(self._pass_on(group))

    def abandon(self, group: CommitGroup, error: BaseException) -> BaseException:
        """Undo a block that raised. Return the error to raise."""
        if os.getpid() == group.process:
            try:
                with group.connection.lock:
                    self._take_back(group)
                    group.undo()
            finally:
                self._leave_queue(group)
        if isinstance(error, sqlite3.Error):
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
                return _too_long(group)
            return _as_own(error, self._database.name) or error
        return error

    def join(self, work: Callable[[SqliteExecutor], T]) -> T:
        """Write something of the engine's in the transaction of the current group, and share its sync."""
        group = self._join_group()
        try:
            with group.connection.lock, translating(self._database.name):
                if group.ended:
                    raise _busy(self._database.name)
                # It has to see what earlier blocks did to the jobs.
                group.mark()
                group.savepoint()
                try:
                    answer = work(group.executor)
                except BaseException:
                    group.undo()
                    raise
                group.add()
        except BaseException:
            self._leave_queue(group)
            raise
        group.outcome(self._pass_on(group))
        return answer

    @property
    def busy(self) -> bool:
        """Whether blocks are running."""
        return self._queue.held

    def _join_group(self) -> CommitGroup:
        wait, until = self._database.wait_seconds_max, self._database.wait_until()
        token = object()
        try:
            if not self._queue.acquire(wait, token):
                raise DatabaseBusy(self._database.name, f"other commit blocks have been writing for {wait:g} s")
            group = self._group
            if group is not None:
                with group.connection.lock:
                    if not group.ended:
                        self._database.set_writer_thread(threading.get_ident())
                        return group
            self._group = group = CommitGroup(self._database, until)
            return group
        except BaseException:
            self._queue.release(token)
            raise

    def _take_back(self, group: CommitGroup) -> None:
        group.in_body = False
        if not group.cut_off:
            group.connection.take_back()

    def _pass_on(self, group: CommitGroup) -> threading.Lock | None:
        """Pass the transaction to the next waiting block if the group takes more, else commit here. Return the lock to
        wait for, if any."""
        if self._queue.waiting and self._may_pass_on(group):
            told = group.expect()
            # The last step before this thread waits: the next thread needs the interpreter's lock.
            if self._queue.release_to_waiter():
                return told
            group.forget(told)
        self._end(group)
        return None

    def _leave_queue(self, group: CommitGroup) -> None:
        """Pass the transaction on, or end the group, without waiting for the outcome."""
        if not (self._may_pass_on(group) and self._queue.release_to_waiter()):
            self._end(group)

    def _may_pass_on(self, group: CommitGroup) -> bool:
        with group.connection.lock:
            if group.ended or group.connection.lost is not None or not group.takes_more:
                return False
            self._database.set_writer_thread(None)
            return True

    def _end(self, group: CommitGroup) -> None:
        connection = group.connection
        with connection.lock:
            if group.cut_off:
                # Other blocks continue on another connection.
                connection.take_back()
                connection.close()
                return
            if not group.ended:
                self._database.set_writer_thread(None)
                if connection.lost is not None:
                    group.end(_busy(self._database.name))
                else:
                    with suppress(DatabaseBusy):
                        group.mark()
                    if not group.ended:
                        group.end()
        self._queue.release()

    def _cut_off(self, group: CommitGroup) -> None:
        """Roll back a group whose time is over, whatever its block is doing, and let others write."""
        connection, name = group.connection, self._database.name
        while not connection.lock.acquire(timeout=_INTERRUPT_EVERY):
            if group.in_body:
                connection.interrupt()
        try:
            if group.ended or group.process != os.getpid():
                return
            connection.lost = _too_long(group)
            group.cut_off = group.in_body
            if group.cut_off:
                self._database.drop_writer()
            connection.claim_for_engine()
            group.end(_busy(name))
            if group.cut_off:
                connection.lend()
                self._queue.release()
        finally:
            connection.lock.release()


def _too_long(group: CommitGroup) -> WrongPlace:
    """Return the error of a block that was open for too long. The attempt counts: repeating it would not help."""
    return WrongPlace(
        "a commit block",
        f"that is open for more than {_CLOCK.monotonic() - group.begun:.2g} s on SQLite",
        "do slow work before the block: no other writer can write while it is open",
    )


def _busy(name: str) -> DatabaseBusy:
    return DatabaseBusy(name, "another commit block ended the transaction that this one shared with it")


def _as_own(error: sqlite3.Error, name: str) -> DetentError | None:
    """Return an error of the environment as Detent's own; None for a mistake in the user's statement."""
    found = translated(error, name)
    return None if type(found) in (DatabaseError, GuardViolation) else found
