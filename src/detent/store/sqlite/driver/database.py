"""One SQLite file: its write connection, its readers, its log, and what a fork must not carry along.

Every write transaction passes the turnstile and begins IMMEDIATE, so it never fails half-way for want of a lock.
Readers have connections of their own and never leave a transaction open. The log is copied back only while the write
lock is held, since SQLite before 3.51.3 may corrupt a file that is checkpointed and written at the same moment.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from urllib.parse import quote

from detent.errors import DatabaseBusy, DatabaseError, DatabaseUnreachable, WrongPlace
from detent.model.clock import SystemClock
from detent.model.facts import LogGrowth
from detent.store.sqlite.driver import forks
from detent.store.sqlite.driver.blocks import Blocks
from detent.store.sqlite.driver.failures import translated, translating
from detent.store.sqlite.driver.guarded import GuardedConnection
from detent.store.sqlite.driver.log import KEPT_BYTES, Log
from detent.store.sqlite.driver.place import MEMORY, check_place, make_file, url_of
from detent.store.sqlite.driver.turnstile import FairLock, Turnstile

__all__ = ["Database"]

C = TypeVar("C", bound=sqlite3.Connection)
T = TypeVar("T")

_REAL = SystemClock()
_IDLE_READERS_MAX = 4
_RETRY_PAUSE = 0.001
_FORK_PATIENCE = 1.0
_BUSY_SLICE = 0.1
"""Seconds that SQLite itself waits for the write lock, before the writer looks at its own deadline."""

_SETTINGS = (
    "PRAGMA wal_autocheckpoint = 0",
    "PRAGMA synchronous = FULL",
    f"PRAGMA journal_size_limit = {KEPT_BYTES}",
)


class _Turn:
    """Whose turn it is to write, and the lock of the turnstile, which a database in memory has not. Made before the
    turn is asked for, so that an interrupt at any moment leaves something that can be given back. All its waits end
    with the moment `until`."""

    __slots__ = ("lock", "over", "process", "until")

    def __init__(self, until: float) -> None:
        self.process = os.getpid()
        self.until = until
        self.lock: int | None = None
        self.over = False


class Database:
    """Opens lazily, serves any thread, survives a fork. `wait_seconds_max` bounds the time that a call waits, for all
    the locks that it needs together."""

    def __init__(self, path: str, *, wait_seconds_max: float = 10.0) -> None:
        self.name = url_of(path)
        self.in_memory = path == MEMORY
        self._link = path if os.path.islink(path) else None
        self._path = path if self.in_memory else os.path.realpath(path)
        self.wait_seconds_max = wait_seconds_max
        self._log = Log(self._path)
        self._turnstile = Turnstile(self._path, self.name)
        self._writer: GuardedConnection | None = None
        self._keeper: sqlite3.Connection | None = None
        self._watcher: sqlite3.Connection | None = None
        self._idle: list[sqlite3.Connection] = []
        self._begin_life()
        forks.watch(self)

    def _begin_life(self) -> None:
        self._turn = FairLock()
        self.blocks = Blocks(self)
        self._readers = threading.Condition()
        self._reading = 0
        self._carried = False
        self._fork_holds_turn = False

    # -- transactions ------------------------------------------------------------------------------------------

    @property
    def path(self) -> str | None:
        """The file; None in memory."""
        return None if self.in_memory else self._path

    def log_growth(self) -> LogGrowth | None:
        """How long the log is, by its file; None in memory."""
        return None if self.in_memory else self._log.growth()

    def create_file(self) -> None:
        """Make the file where there is none. Refuses whatever `check_place` refuses, and what is not a database."""
        if self.in_memory:
            return
        if not check_place(self._path, self.name, self._link):
            make_file(self._path, self.name)
        # A look before any lock file is made: beside something that is not a database nothing is written.
        with self.reading() as connection, translating(self.name):
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()

    def is_there(self) -> bool:
        """Whether there is anything to look at. Refuses whatever `check_place` refuses; makes nothing."""
        return self.in_memory or check_place(self._path, self.name, self._link)

    def check_thread(self) -> None:
        """`WrongPlace` where this thread is writing already."""
        self._turn.check_owner()

    def wait_until(self) -> float:
        """Return the moment of the monotonic clock until which a call that begins now may wait for locks."""
        return _REAL.monotonic() + self.wait_seconds_max

    @contextmanager
    def writing(self, until: float | None = None) -> Iterator[GuardedConnection]:
        """A write transaction, durable when the block has ended; whatever is raised inside rolls it back. A caller that
        has waited already gives the moment `until` which it may wait.

        `DatabaseBusy` where the lock cannot be had in time, `WrongPlace` where this thread is writing already.
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
            self._leave(turn)  # an interrupt may have cut the first one short

    def write(self, work: Callable[[GuardedConnection], T], *, synced: bool = True) -> T:
        """The same around one function: the ordinary way, at half the price. Not `synced`, it is durable with the next
        one that is, whoever makes that; until then it is lost where the machine itself goes down."""
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
            self._leave(turn)  # an interrupt may have cut the first one short

    def _enter(self, turn: _Turn) -> None:
        """To be followed by `_leave`, whatever it raises."""
        self._check_carried()
        if not self._turn.acquire(_left(turn.until), turn):
            raise DatabaseBusy(self.name, f"another thread has been writing for {self.wait_seconds_max:g} s")
        if self.in_memory:
            return
        if self._writer is None and not check_place(self._path, self.name, self._link):
            raise DatabaseUnreachable(self.name, "there is no such file")
        turn.lock = self._turnstile.open()
        self._turnstile.enter(_left(turn.until))

    def _leave(self, turn: _Turn) -> None:
        """Once or again: whatever this turn has is given back."""
        # Forked in between, the locks are the parent's to drop.
        if not turn.over and os.getpid() == turn.process:
            if turn.lock is not None:
                self._turnstile.leave(turn.lock)
                turn.lock = None
            self._turn.release(turn)
            turn.over = True

    def _begun(self, turn: _Turn, *, synced: bool = True) -> GuardedConnection:
        connection = self._open_writer(turn.until)
        self._begin(connection, turn.until, synced=synced)
        return connection

    def _give_up(self, turn: _Turn, connection: GuardedConnection) -> None:
        if os.getpid() == turn.process and connection.in_transaction:
            connection.say("ROLLBACK")

    def _end(self, turn: _Turn, connection: GuardedConnection) -> None:
        if os.getpid() != turn.process:
            raise _carried("a transaction")
        self._commit(connection)
        self._copy_log_back(connection)

    def lend(self, thread: int | None) -> None:
        """The transaction that is open goes on in another thread."""
        self._turn.lend(thread)

    def drop_writer(self) -> None:
        """Leave the write connection to whoever still has it in hand. Only inside `writing`."""
        self._writer = None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A consistent look on a connection of its own; nothing can be written through it."""
        if self.in_memory:
            with self.writing() as only:
                yield only
            return
        self._check_carried()
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
        """A number that changes with every commit by anybody else than the connection that looks."""
        self._check_carried()
        with translating(self.name), self._readers:
            if self._watcher is None:
                self._watcher = self._connect()
            (version,) = self._watcher.execute("PRAGMA data_version").fetchone()
            return int(version)

    def close(self) -> None:
        """Close every connection that is not in use. Used again, it opens again."""
        token = object()
        try:
            if self._turn.acquire(self.wait_seconds_max, token):
                with self._readers:
                    self._close_all()
        finally:
            self._turn.release(token)

    # -- the write connection ----------------------------------------------------------------------------------

    def _open_writer(self, until: float) -> GuardedConnection:
        if self._writer is None:
            connection = self._connected(GuardedConnection, busy_max=_BUSY_SLICE)
            try:
                self._patiently(lambda: connection.execute("PRAGMA journal_mode = WAL"), until)
                (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
                if mode != "wal" and not self.in_memory:
                    raise DatabaseError(self.name, f"its journal mode is {mode} and cannot be changed to wal")
            except BaseException:
                connection.close()
                raise
            self._writer = connection
        return self._writer

    def _begin(self, connection: GuardedConnection, until: float, *, synced: bool) -> None:
        if connection.in_transaction:
            connection.say("ROLLBACK")
        if connection.synced is not synced:
            # Unknown while it changes: whatever interrupts this, whoever comes next says it again.
            connection.synced = None
            connection.say(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
            connection.synced = synced
        self._patiently(lambda: connection.say("BEGIN IMMEDIATE"), until)

    def _patiently(self, ask: Callable[[], object], until: float) -> None:
        """Ask again while others hold the lock, until that moment: not every lock of SQLite's waits by itself."""
        while True:
            try:
                ask()
            except sqlite3.OperationalError as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                if _REAL.monotonic() > until:
                    raise DatabaseBusy(
                        self.name,
                        f"another connection holds the write lock, and this call may wait {self.wait_seconds_max:g} s; "
                        "if it is yours, commit it, or write in its transaction with app.using(connection)",
                    ) from error
                _REAL.sleep(_RETRY_PAUSE)
            else:
                return

    def _commit(self, connection: GuardedConnection) -> None:
        if not connection.in_transaction:
            raise WrongPlace("COMMIT or ROLLBACK", "inside a transaction of Detent's", "the transaction ends by itself")
        try:
            connection.say("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                connection.say("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise translated(error, self.name, committing=True) from error
            raise

    def _copy_log_back(self, connection: sqlite3.Connection) -> None:
        """A checkpoint, where the log has grown too long: under the write lock, on a connection of its own."""
        if self.in_memory or not self._log.is_long():
            return
        self._log.copied()
        # What was committed is durable already: a checkpoint that fails is tried again by a later commit.
        try:
            self._keeper = self._keeper or self._connect()
            connection.execute("PRAGMA busy_timeout = 0")
            try:
                connection.execute("BEGIN IMMEDIATE")
                self._keeper.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                connection.execute(f"PRAGMA busy_timeout = {int(_BUSY_SLICE * 1000)}")
        except sqlite3.Error as error:
            self._log.report(f"its write-ahead log cannot be copied back: {error}", self.name)
        if (grown := self._log.has_outgrown()) is not None:
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
        """Close every connection: SQLite's locks do not cross a fork, its belief to hold them does."""
        if self.in_memory:
            return
        try:
            self._fork_holds_turn = self._turn.acquire(_FORK_PATIENCE)
        except WrongPlace:
            self._fork_holds_turn = False
        self._readers.acquire()
        idle = self._readers.wait_for(lambda: self._reading == 0, _FORK_PATIENCE)
        self._carried = not (self._fork_holds_turn and idle)
        if not self._carried:
            self._close_all()

    def after_fork_in_parent(self) -> None:
        """Go on; connections open again when they are needed."""
        if self.in_memory:
            return
        self._carried = False
        self._readers.release()
        if self._fork_holds_turn:
            self._turn.release()

    def after_fork_in_child(self) -> None:
        """Begin anew. Where the parent was in the middle of something, this child may not touch the database."""
        if self.in_memory:
            return
        carried = self._carried
        self._turnstile.close()
        self._log.close()
        self._begin_life()
        self._carried = carried
        forks.abandon([*self._idle, self._writer, self._keeper, self._watcher])
        self._idle, self._writer, self._keeper, self._watcher = [], None, None, None

    def _check_carried(self) -> None:
        if self._carried:
            raise _carried("this database")

    def _close_all(self) -> None:
        self._turnstile.close()
        self._log.close()
        for connection in (*self._idle, self._writer, self._keeper, self._watcher):
            if connection is not None:
                connection.close()
        self._idle, self._writer, self._keeper, self._watcher = [], None, None, None


def _left(until: float) -> float:
    return max(0.0, until - _REAL.monotonic())


def _carried(call: str) -> WrongPlace:
    return WrongPlace(
        call,
        "in a process that was forked in the middle of a transaction",
        "fork before the transaction begins, or start a fresh process",
    )
