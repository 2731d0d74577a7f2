"""One SQLite file: its write connection, its readers, its log, and its behaviour across forks.

Every write transaction takes the write lock and begins IMMEDIATE, so it never fails half-way because of a lock. Readers
have connections of their own and never leave a transaction open. A checkpoint runs only while the write lock is held:
SQLite before 3.51.3 may corrupt a file that is checkpointed and written at the same time.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar
from urllib.parse import quote

from detent.errors import DatabaseBusy, DatabaseError, DatabaseUnreachable, WrongPlace
from detent.model.clock import SystemClock
from detent.model.database_facts import LogGrowth
from detent.store.sqlite.driver import fork_handlers
from detent.store.sqlite.driver.database_file import MEMORY, check_file, create_file, file_url
from detent.store.sqlite.driver.failures import is_io_error, translated, translating
from detent.store.sqlite.driver.group_commit import GroupCommit
from detent.store.sqlite.driver.write_ahead_log import KEPT_BYTES, WriteAheadLog
from detent.store.sqlite.driver.write_connection import WriteConnection
from detent.store.sqlite.driver.write_lock import FairLock, WriteLock

__all__ = ["Database"]

C = TypeVar("C", bound=sqlite3.Connection)
T = TypeVar("T")

_CLOCK = SystemClock()
_IDLE_READERS_MAX = 4
_RETRY_PAUSE = 0.001
_FORK_PATIENCE = 1.0
_BUSY_SLICE = 0.1
"""Seconds that SQLite itself waits for its write lock before the writer checks its own deadline."""

_SETTINGS = (
    "PRAGMA wal_autocheckpoint = 0",
    "PRAGMA synchronous = FULL",
    f"PRAGMA journal_size_limit = {KEPT_BYTES}",
)


class _Turn:
    """A writer's turn. It exists before the locks are taken, so that an interrupt at any moment leaves something to
    release. `lock` is the lock file; a database in memory has none. All waits end at the moment `until`."""

    __slots__ = ("lock", "over", "process", "until")

    def __init__(self, until: float) -> None:
        self.process = os.getpid()
        self.until = until
        self.lock: int | None = None
        self.over = False


class Database:
    """Opens lazily, serves any thread, survives a fork. A call waits at most `wait_seconds_max` for all the locks that
    it needs together."""

    def __init__(self, path: str, *, wait_seconds_max: float = 10.0) -> None:
        self.name = file_url(path)
        self.in_memory = path == MEMORY
        self._link = path if os.path.islink(path) else None
        self._path = path if self.in_memory else os.path.realpath(path)
        self.wait_seconds_max = wait_seconds_max
        self._log = WriteAheadLog(self._path)
        self._write_lock = WriteLock(self._path, self.name)
        self._writer: WriteConnection | None = None
        self._checkpointer: sqlite3.Connection | None = None
        self._version_reader: sqlite3.Connection | None = None
        self._idle: list[sqlite3.Connection] = []
        self._start()
        fork_handlers.register(self)

    def _start(self) -> None:
        self._threads = FairLock()
        self.group_commit = GroupCommit(self)
        self._readers = threading.Condition()
        self._reading = 0
        self._forked_inside = False
        self._fork_holds_lock = False

    # -- transactions ------------------------------------------------------------------------------------------

    @property
    def path(self) -> str | None:
        """The file; None in memory."""
        return None if self.in_memory else self._path

    def log_growth(self) -> LogGrowth | None:
        """Return how long the log is; None in memory."""
        return None if self.in_memory else self._log.growth()

    def create_file(self) -> None:
        """Create the file if there is none. Raises what `check_file` raises, and `NotADatabase`."""
        if self.in_memory:
            return
        if not check_file(self._path, self.name, self._link):
            create_file(self._path, self.name)
        # Read before a lock file is created: nothing is written beside a file that is not a database.
        with self.reading() as connection, translating(self.name):
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()

    def is_there(self) -> bool:
        """Return whether the database exists. Raises what `check_file` raises; creates nothing."""
        return self.in_memory or check_file(self._path, self.name, self._link)

    def check_thread(self) -> None:
        """Raise `WrongPlace` if this thread is already writing."""
        self._threads.check_owner()

    def wait_until(self) -> float:
        """Return the moment of the monotonic clock until which a call that begins now may wait for locks."""
        return _CLOCK.monotonic() + self.wait_seconds_max

    @contextmanager
    def writing(self, until: float | None = None) -> Iterator[WriteConnection]:
        """Open a write transaction. It is durable when the block has ended; an exception rolls it back. A caller that
        has already waited passes the moment `until` which it may wait.

        Raises `DatabaseBusy` if the lock is not free in time, `WrongPlace` if this thread is already writing.
        """
        turn = _Turn(self.wait_until() if until is None else until)
        try:
            try:
                self._enter(turn)
                connection = self._begun(turn)
                try:
                    yield connection
                except BaseException:
                    self._give_up(turn, connection)
                    raise
                self._end(turn, connection)
            except sqlite3.Error as error:
                raise translated(error, self.name) from error
            finally:
                self._leave(turn)
        finally:
            self._leave(turn)  # again, in case the first call was interrupted

    def write(self, work: Callable[[WriteConnection], T], *, synced: bool = True) -> T:
        """Run a function in a write transaction, at half the cost of `writing`. If it is not `synced`, it becomes
        durable with the next synced commit of any process; until then a crash of the machine loses it."""
        turn = _Turn(self.wait_until())
        try:
            try:
                self._enter(turn)
                connection = self._begun(turn, synced=synced)
                try:
                    answer = work(connection)
                except BaseException:
                    self._give_up(turn, connection)
                    raise
                self._end(turn, connection)
                return answer
            except sqlite3.Error as error:
                raise translated(error, self.name) from error
            finally:
                self._leave(turn)
        finally:
            self._leave(turn)  # again, in case the first call was interrupted

    def _enter(self, turn: _Turn) -> None:
        """Take the locks. The caller calls `_leave` afterwards, also after an error."""
        self._check_fork()
        if not self._threads.acquire(_left(turn.until), turn):
            raise DatabaseBusy(self.name, f"another thread has been writing for {self.wait_seconds_max:g} s")
        if self.in_memory:
            return
        if self._writer is None and not check_file(self._path, self.name, self._link):
            raise DatabaseUnreachable(self.name, "there is no such file")
        turn.lock = self._write_lock.open()
        self._write_lock.acquire(_left(turn.until))

    def _leave(self, turn: _Turn) -> None:
        """Release whatever this turn holds. May be called again."""
        # In a process that was forked in between, the locks belong to the parent.
        if not turn.over and os.getpid() == turn.process:
            if turn.lock is not None:
                self._write_lock.release(turn.lock)
                turn.lock = None
            self._threads.release(turn)
            turn.over = True

    def _begun(self, turn: _Turn, *, synced: bool = True) -> WriteConnection:
        connection = self._open_writer(turn.until)
        self._begin(connection, turn.until, synced=synced)
        return connection

    def _give_up(self, turn: _Turn, connection: WriteConnection) -> None:
        if os.getpid() == turn.process and connection.in_transaction:
            connection.execute_own("ROLLBACK")

    def _end(self, turn: _Turn, connection: WriteConnection) -> None:
        if os.getpid() != turn.process:
            raise _forked_inside("a transaction")
        self._commit(connection)
        self._checkpoint(connection)

    def set_writer_thread(self, thread: int | None) -> None:
        """Move the open transaction to another thread."""
        self._threads.set_owner(thread)

    def drop_writer(self) -> None:
        """Leave the write connection to its current user; the next writer opens another. Only inside `writing`."""
        self._writer = None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open a consistent snapshot on a read-only connection of its own."""
        if self.in_memory:
            with self.writing() as only:
                yield only
            return
        self._check_fork()
        with translating(self.name):
            connection = self._borrow()
            process = os.getpid()
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                if os.getpid() == process:
                    self._give_back(connection)

    def version(self) -> int:
        """Return a number that changes with every commit by another connection."""
        self._check_fork()
        with translating(self.name), self._readers:
            if self._version_reader is None:
                self._version_reader = self._connect()
            (version,) = self._version_reader.execute("PRAGMA data_version").fetchone()
            return int(version)

    def close(self) -> None:
        """Close every connection that is not in use. The database can be used again."""
        token = object()
        try:
            if self._threads.acquire(self.wait_seconds_max, token):
                with self._readers:
                    self._close_all()
        finally:
            self._threads.release(token)

    # -- the write connection ----------------------------------------------------------------------------------

    def _open_writer(self, until: float) -> WriteConnection:
        if self._writer is None:
            connection = self._connected(WriteConnection, busy_max=_BUSY_SLICE)
            try:
                self._retry_while_busy(lambda: connection.execute("PRAGMA journal_mode = WAL"), until)
                (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
                if mode != "wal" and not self.in_memory:
                    raise DatabaseError(self.name, f"its journal mode is {mode} and cannot be changed to wal")
            except BaseException:
                connection.close()
                raise
            self._writer = connection
        return self._writer

    def _begin(self, connection: WriteConnection, until: float, *, synced: bool) -> None:
        if connection.in_transaction:
            connection.execute_own("ROLLBACK")
        if connection.synced is not synced:
            # Unknown while it changes: after an interrupt the next writer sets it again.
            connection.synced = None
            connection.execute_own(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
            connection.synced = synced
        self._retry_while_busy(lambda: connection.execute_own("BEGIN IMMEDIATE"), until)
        if self._log.is_doubtful:
            try:
                self._log.write_again()
            except OSError as error:
                connection.execute_own("ROLLBACK")
                raise DatabaseUnreachable(
                    self.name, f"a sync of its write-ahead log failed, and it cannot be written again: {error.strerror}"
                ) from error

    def _doubt_log(self, connection: WriteConnection) -> None:
        """Note that a sync has failed, and repair the log at once if that is possible: other processes do not know."""
        self._log.is_doubtful = True
        with suppress(sqlite3.Error, DatabaseError):
            self._begin(connection, _CLOCK.monotonic(), synced=True)
            connection.execute_own("ROLLBACK")

    def _retry_while_busy(self, ask: Callable[[], object], until: float) -> None:
        """Retry while another connection holds the lock, until this moment: SQLite does not wait for every lock."""
        while True:
            try:
                ask()
            except sqlite3.OperationalError as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                if _CLOCK.monotonic() > until:
                    raise DatabaseBusy(
                        self.name,
                        f"another connection holds the write lock, and this call may wait {self.wait_seconds_max:g} s; "
                        "if it is yours, commit it, or write in its transaction with app.using(connection)",
                    ) from error
                _CLOCK.sleep(_RETRY_PAUSE)
            else:
                return

    def _commit(self, connection: WriteConnection) -> None:
        if not connection.in_transaction:
            raise WrongPlace("COMMIT or ROLLBACK", "inside a transaction of Detent's", "the transaction ends by itself")
        try:
            connection.execute_own("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                connection.execute_own("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                if is_io_error(error) and not self.in_memory:
                    self._doubt_log(connection)
                raise translated(error, self.name, committing=True) from error
            raise

    def _checkpoint(self, connection: WriteConnection) -> None:
        """Run a checkpoint if the log is long: under the write lock, on a connection of its own."""
        if self.in_memory or not self._log.is_long():
            return
        self._log.note_checkpoint()
        # The commit is durable already. A later commit retries a failed checkpoint.
        try:
            self._checkpointer = self._checkpointer or self._connect()
            connection.execute("PRAGMA busy_timeout = 0")
            try:
                connection.execute("BEGIN IMMEDIATE")
                self._checkpointer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                connection.execute(f"PRAGMA busy_timeout = {int(_BUSY_SLICE * 1000)}")
        except sqlite3.Error as error:
            self._log.report(f"its write-ahead log cannot be checkpointed: {error}", self.name)
            if is_io_error(error):
                self._doubt_log(connection)
        if (grown := self._log.growth_to_report()) is not None:
            self._log.report(grown.message, self.name)

    # -- readers -----------------------------------------------------------------------------------------------

    def _borrow(self) -> sqlite3.Connection:
        with self._readers:
            self._reading += 1
            if self._idle:
                return self._idle.pop()
        try:
            connection = self._connect()
            connection.execute("PRAGMA query_only = ON")
        except BaseException:
            self._count_out()
            raise
        return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except BaseException:
            connection.close()
            self._count_out()
            raise
        with self._readers:
            keep = len(self._idle) < _IDLE_READERS_MAX
            if keep:
                self._idle.append(connection)
        if not keep:
            connection.close()
        self._count_out()

    def _count_out(self) -> None:
        with self._readers:
            self._reading -= 1
            self._readers.notify_all()

    def _connect(self) -> sqlite3.Connection:
        return self._connected(sqlite3.Connection, busy_max=self.wait_seconds_max)

    def _connected(self, kind: type[C], *, busy_max: float) -> C:
        where = MEMORY if self.in_memory else f"file:{quote(self._path)}?mode=rw"
        connection = kind(
            where,
            uri=not self.in_memory,
            timeout=min(busy_max, self.wait_seconds_max),
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            for setting in _SETTINGS:
                connection.execute(setting)
        except BaseException:
            connection.close()
            raise
        return connection

    # -- forks -------------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Close every connection: the child would inherit SQLite's record of its locks, but not the locks."""
        if self.in_memory:
            return
        try:
            self._fork_holds_lock = self._threads.acquire(_FORK_PATIENCE)
        except WrongPlace:
            self._fork_holds_lock = False
        self._readers.acquire()
        idle = self._readers.wait_for(lambda: self._reading == 0, _FORK_PATIENCE)
        self._forked_inside = not (self._fork_holds_lock and idle)
        if not self._forked_inside:
            self._close_all()

    def after_fork_in_parent(self) -> None:
        """Continue; connections open again when they are needed."""
        if self.in_memory:
            return
        self._forked_inside = False
        self._readers.release()
        if self._fork_holds_lock:
            self._threads.release()

    def after_fork_in_child(self) -> None:
        """Start afresh. If the parent was inside a transaction, this child may not use the database."""
        if self.in_memory:
            return
        forked_inside = self._forked_inside
        self._write_lock.close()
        self._log.close()
        self._start()
        self._forked_inside = forked_inside
        fork_handlers.never_close([*self._idle, self._writer, self._checkpointer, self._version_reader])
        self._idle, self._writer, self._checkpointer, self._version_reader = [], None, None, None

    def _check_fork(self) -> None:
        if self._forked_inside:
            raise _forked_inside("this database")

    def _close_all(self) -> None:
        self._write_lock.close()
        self._log.close()
        for connection in (*self._idle, self._writer, self._checkpointer, self._version_reader):
            if connection is not None:
                connection.close()
        self._idle, self._writer, self._checkpointer, self._version_reader = [], None, None, None


def _left(until: float) -> float:
    return max(0.0, until - _CLOCK.monotonic())


def _forked_inside(call: str) -> WrongPlace:
    return WrongPlace(
        call,
        "in a process that was forked in the middle of a transaction",
        "fork before the transaction begins, or start a fresh process",
    )
