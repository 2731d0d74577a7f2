"""The write lock: first come, first served among the threads of a process, and fair between processes.

SQLite gives its write lock to any process that asks at the right moment, so a process that commits in a tight loop
would keep a lease renewal of another one waiting for seconds. Here every writer takes the lock file `next`, then
`write`, then drops `next`. Only the holder of `next` waits for `write`, so at most one transaction goes first. If a
process is stopped while it holds one of them, it blocks all others; they report that when their time is over.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections import deque
from contextlib import suppress

from detent.errors import DatabaseBusy, DatabaseReadOnly, DatabaseUnreachable, WrongPlace
from detent.model.clock import SystemClock

__all__ = ["FairLock", "WriteLock"]

_CLOCK = SystemClock()
_POLL_FIRST = 0.00005
_POLL_SOON = 0.0002
_POLL_LATER = 0.001
_SOON = 0.1
"""Seconds for which the next writer polls often. Most transactions are shorter, and none starts until it notices."""


class FairLock:
    """A lock for threads, granted in the order of asking. The thread that holds it may not ask again.

    An interrupt (Ctrl-C) can come between any two steps. So a caller passes a `token`, acquires inside `try`, and
    releases in `finally` with the same token: that is a no-op if the token neither holds the lock nor waits for it.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiting: deque[_Waiter] = deque()
        self._holder: object | None = None
        self._owner: int | None = None

    @property
    def held(self) -> bool:
        """Whether the lock is held."""
        return self._holder is not None

    @property
    def waiting(self) -> int:
        """How many callers wait."""
        return len(self._waiting)

    def acquire(self, timeout: float, token: object | None = None) -> bool:
        """Wait at most `timeout` seconds. Return whether the lock was acquired. Raises `WrongPlace` if this thread
        holds it already."""
        self.check_owner()
        waiter = _Waiter(object() if token is None else token)
        with self._mutex:
            if self._holder is None:
                self._owner = threading.get_ident()
                self._holder = waiter.token
                return True
            waiter.gate.acquire()
            self._waiting.append(waiter)
        try:
            granted = waiter.gate.acquire(timeout=timeout)
        except BaseException:
            self.release(waiter.token)
            raise
        if not granted and self._leave(waiter):
            return False
        self._owner = threading.get_ident()
        return True

    def check_owner(self) -> None:
        """Raise `WrongPlace` if this thread holds the lock and would wait for itself."""
        if self._owner == threading.get_ident():
            raise WrongPlace(
                "a write of its own",
                "inside a transaction of the same thread on the same SQLite file",
                "write through that transaction: tx.intend and tx.execute in a commit block, or app.using(connection)",
            )

    def release(self, token: object | None = None) -> None:
        """Grant the lock to the first waiter. With a token: only if that token holds it; if it waits, remove it."""
        with self._mutex:
            if self._waiting and self._waiting[0].token is self._holder:
                self._grant_next()  # an earlier call was interrupted in the middle
                if token is not self._holder:
                    return
            if token is None or token is self._holder:
                self._owner = None
                self._grant_next()
            else:
                self._waiting = deque(one for one in self._waiting if one.token is not token)

    def release_to_waiter(self) -> bool:
        """Grant the lock to the first waiter. Return False, and keep it, if there is none."""
        with self._mutex:
            if not self._waiting:
                return False
            self._owner = None
            self._grant_next()
            return True

    def set_owner(self, thread: int | None) -> None:
        """Move the lock to another thread of the same transaction; None while it is between two."""
        self._owner = thread

    def _grant_next(self) -> None:
        """Grant the lock to the first waiter. May be repeated after an interrupt at any step."""
        if not self._waiting:
            self._holder = None
            return
        first = self._waiting[0]
        self._holder = first.token
        if first.gate.locked():
            first.gate.release()
        self._waiting.popleft()

    def _leave(self, waiter: _Waiter) -> bool:
        """Stop waiting. Return False if the lock was granted in the same moment."""
        with self._mutex, suppress(ValueError):
            if self._holder is not waiter.token:
                self._waiting.remove(waiter)
                return True
        return False


class _Waiter:
    """A waiting caller. `gate` is released when the lock is granted."""

    __slots__ = ("gate", "token")

    def __init__(self, token: object) -> None:
        self.token = token
        self.gate = threading.Lock()


class _BlockingFlock:
    """A blocking `flock`, whose queue in the kernel is fairer than polling. A blocked call cannot be cancelled, so a
    thread makes it, and drops the lock if it is no longer wanted."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._mutex = threading.Lock()
        self._acquired = threading.Event()
        self._wanted = True
        self._over = False
        threading.Thread(target=self._lock_file, name="detent-flock", daemon=True).start()

    def wait(self, timeout: float) -> bool:
        """Wait for the lock. Return False if it took too long; the lock is not wanted from then on."""
        try:
            if self._acquired.wait(timeout):
                return True
        except BaseException:
            if not self._give_up():
                self.release()
            raise
        return not self._give_up()

    def _give_up(self) -> bool:
        """Do not want the lock any more. Return False if it was acquired in the same moment."""
        with self._mutex:
            self._wanted = self._acquired.is_set()
            return not self._wanted

    def want_again(self) -> bool:
        """Want the lock again. Return False if it was acquired and dropped in the meantime."""
        with self._mutex:
            self._wanted = not self._over
            return self._wanted

    def release(self) -> None:
        """Unlock and close the file. May be called twice."""
        # Closing is not enough: a process that was forked in the meantime has the file open too.
        if self._file >= 0:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            file, self._file = self._file, -1
            os.close(file)

    def _lock_file(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        with self._mutex:
            if self._wanted:
                self._acquired.set()
            else:
                self._over = True
                self.release()


class WriteLock:
    """The two lock files of a database, between processes. The caller holds a `FairLock` between threads."""

    def __init__(self, path: str, database: str) -> None:
        self._names = (f"{path}-detent-next", f"{path}-detent-write")
        self._path = path
        self._database = database
        self._files: tuple[int, int] | None = None
        self._abandoned: _BlockingFlock | None = None

    def open(self) -> int:
        """Return the lock file `write`, to be passed to `release`, whether `acquire` was interrupted or not."""
        return self._open()[1]

    def acquire(self, timeout: float) -> None:
        """Lock `write`. Raises `DatabaseBusy` after `timeout` seconds: the current or the next writer is slow or
        stopped."""
        following, write = self._open()
        deadline = _CLOCK.monotonic() + timeout
        flock = None
        try:
            if not _try(following):
                flock = self._wait_for_next(timeout)
            self._take(write, deadline, timeout)
            self._drop_next(following, flock)
        except BaseException:
            # Again, in case the first call was interrupted.
            self._drop_next(following, flock)
            raise

    def _drop_next(self, following: int, flock: _BlockingFlock | None) -> None:
        """Unlock `next`. Without effect if it is not held."""
        if flock is None:
            fcntl.flock(following, fcntl.LOCK_UN)
        else:
            flock.release()

    def release(self, write: int) -> None:
        """Unlock `write`. Without effect if it is not held."""
        fcntl.flock(write, fcntl.LOCK_UN)

    def _wait_for_next(self, timeout: float) -> _BlockingFlock:
        """Lock `next`. A call that was given up and still waits is used again: there is never more than one."""
        flock, self._abandoned = self._abandoned, None
        if flock is None or not flock.want_again():
            flock = _BlockingFlock(self._open_one(self._names[0]))
        if flock.wait(timeout):
            return flock
        self._abandoned = flock
        raise DatabaseBusy(
            self._database,
            f"another process has waited to write for {timeout:g} s; if it was stopped, resume or end it",
        )

    def _take(self, write: int, deadline: float, timeout: float) -> None:
        # Polling is fair here: all other writers wait for `next`.
        pause = _POLL_FIRST
        soon = _CLOCK.monotonic() + _SOON
        while not _try(write):
            now = _CLOCK.monotonic()
            if now > deadline:
                raise DatabaseBusy(self._database, f"another process has been writing for {timeout:g} s")
            _CLOCK.sleep(pause)
            pause = min(2 * pause, _POLL_SOON if now < soon else _POLL_LATER)

    def _open(self) -> tuple[int, int]:
        if self._files is None:
            first = self._open_one(self._names[0])
            try:
                self._files = (first, self._open_one(self._names[1]))
            except BaseException:
                os.close(first)
                raise
        return self._files

    def _open_one(self, name: str) -> int:
        try:
            with suppress(FileExistsError):
                made = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                # Every user that may write to the database must be able to lock it.
                os.fchmod(made, os.stat(self._path).st_mode & 0o666)
                return made
            return os.open(name, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            kind = DatabaseReadOnly if isinstance(error, PermissionError) else DatabaseUnreachable
            raise kind(self._database, f"the lock file {os.path.basename(name)}: {error.strerror}") from None

    def close(self) -> None:
        """Close the files. In a forked child the parent's locks stay as they are."""
        files, self._files = self._files, None
        self._abandoned = None
        for file in files or ():
            with suppress(OSError):
                os.close(file)


def _try(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
