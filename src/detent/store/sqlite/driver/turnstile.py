"""Fair turns for writers: first come, first served among the threads of a process, and no starving between processes.

SQLite hands its write lock to whoever asks at the right moment, so a process that commits in a tight loop keeps another
one's renewal waiting for seconds. Here every writer first takes the lock file `next`, then `write`, then drops `next`:
whoever holds `next` is the only one that waits for `write`, and is passed by the one transaction that runs already.
A process that is stopped while it holds one of them keeps everybody out; they say so when their time is over.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections import deque
from contextlib import suppress

from detent.errors import DatabaseBusy, DatabaseReadOnly, DatabaseUnreachable, WrongPlace
from detent.model.clock import SystemClock

__all__ = ["FairLock", "Turnstile"]

_REAL = SystemClock()
_POLL_FIRST = 0.00005
_POLL_SOON = 0.0002
_POLL_LATER = 0.001
_SOON = 0.1
"""Seconds for which whoever is next asks often: most transactions are shorter, and until it hears nobody writes."""


class FairLock:
    """A lock that is handed over in the order of asking. The thread that holds it may not ask again.

    An interrupt (Ctrl-C) may come between any two steps of a caller. So a caller names itself by a `token` that it made
    before, asks inside `try`, and gives the lock back in `finally` under the same token: that is a no-op if the token
    neither holds the lock nor waits for it.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiting: deque[_Waiter] = deque()
        self._holder: object | None = None
        self._owner: int | None = None

    @property
    def held(self) -> bool:
        """Whether anybody holds it."""
        return self._holder is not None

    @property
    def waiting(self) -> int:
        """How many stand in line."""
        return len(self._waiting)

    def acquire(self, timeout: float, token: object | None = None) -> bool:
        """Wait for one's turn, at most `timeout` seconds. `WrongPlace` where this thread holds it already."""
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
            come = waiter.gate.acquire(timeout=timeout)
        except BaseException:
            self.release(waiter.token)
            raise
        if not come and self._leave(waiter):
            return False
        self._owner = threading.get_ident()
        return True

    def check_owner(self) -> None:
        """`WrongPlace` where this thread holds it already, and would wait for itself."""
        if self._owner == threading.get_ident():
            raise WrongPlace(
                "a write of its own",
                "inside a transaction of the same thread on the same SQLite file",
                "write through that transaction: tx.intend and tx.execute in a commit block, or app.using(connection)",
            )

    def release(self, token: object | None = None) -> None:
        """Hand it to the first in line. With a token: only if that one holds it, and let it wait no longer."""
        with self._mutex:
            if self._waiting and self._waiting[0].token is self._holder:
                self._pass_on()  # whoever passed it on before was interrupted in the middle
                if token is not self._holder:
                    return
            if token is None or token is self._holder:
                self._owner = None
                self._pass_on()
            else:
                self._waiting = deque(one for one in self._waiting if one.token is not token)

    def hand_over(self) -> bool:
        """Hand it to the first in line, if there is one; False where nobody waits, and it is still held."""
        with self._mutex:
            if not self._waiting:
                return False
            self._owner = None
            self._pass_on()
            return True

    def lend(self, thread: int | None) -> None:
        """What is done under it goes on in that thread; None where it is between two."""
        self._owner = thread

    def _pass_on(self) -> None:
        """The first in line holds it. May be done again after an interrupt at any step."""
        if not self._waiting:
            self._holder = None
            return
        first = self._waiting[0]
        self._holder = first.token
        if first.gate.locked():
            first.gate.release()
        self._waiting.popleft()

    def _leave(self, waiter: _Waiter) -> bool:
        """Out of the line; False where the turn came in the same moment."""
        with self._mutex, suppress(ValueError):
            if self._holder is not waiter.token:
                self._waiting.remove(waiter)
                return True
        return False


class _Waiter:
    """One who stands in line: `gate` is released when its turn has come."""

    __slots__ = ("gate", "token")

    def __init__(self, token: object) -> None:
        self.token = token
        self.gate = threading.Lock()


class Place:
    """A place in the system's own line for a lock file, which is fairer than to ask again and again. The system lets
    nobody step out of its line: so a thread stands there, and lets the lock go where nobody wants it any more."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._mutex = threading.Lock()
        self._come = threading.Event()
        self._wanted = True
        self._over = False
        threading.Thread(target=self._stand, name="detent-turn", daemon=True).start()

    def has_come(self, timeout: float) -> bool:
        """Wait for the turn. False where it did not come in time, and is not wanted from then on."""
        try:
            if self._come.wait(timeout):
                return True
        except BaseException:
            if not self._step_aside():
                self.leave()
            raise
        return not self._step_aside()

    def _step_aside(self) -> bool:
        """Want it no more; False where the turn came in the same moment."""
        with self._mutex:
            self._wanted = self._come.is_set()
            return not self._wanted

    def take_again(self) -> bool:
        """Want it again; False where it came meanwhile, and was let go."""
        with self._mutex:
            self._wanted = not self._over
            return self._wanted

    def leave(self) -> None:
        """Let the next one come. Leaving twice is leaving once."""
        # Said, and not only by closing: a process that was forked meanwhile has the file open too.
        if self._file >= 0:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            file, self._file = self._file, -1
            os.close(file)

    def _stand(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        with self._mutex:
            if self._wanted:
                self._come.set()
            else:
                self._over = True
                self.leave()


class Turnstile:
    """The two lock files beside a database. One thread at a time may pass: the caller holds a `FairLock`."""

    def __init__(self, path: str, database: str) -> None:
        self._names = (f"{path}-detent-next", f"{path}-detent-write")
        self._path = path
        self._database = database
        self._files: tuple[int, int] | None = None
        self._place: Place | None = None

    def open(self) -> int:
        """The lock file `write`, to be given to `leave`, whether `enter` was interrupted or not."""
        return self._open()[1]

    def enter(self, timeout: float) -> None:
        """Hold `write`. `DatabaseBusy` where that takes more than `timeout` seconds: the writer in front, or whoever
        waits for it, is slow or stands still."""
        turn, write = self._open()
        deadline = _REAL.monotonic() + timeout
        place = None
        try:
            if not _try(turn):
                place = self._stand_in_line(timeout)
            self._take(write, deadline, timeout)
            self._drop_next(turn, place)
        except BaseException:
            # Once more where an interrupt cut it short.
            self._drop_next(turn, place)
            raise

    def _drop_next(self, turn: int, place: Place | None) -> None:
        """May be done again, and where nothing is held."""
        if place is None:
            fcntl.flock(turn, fcntl.LOCK_UN)
        else:
            place.leave()

    def leave(self, write: int) -> None:
        """Let the next one in. Without effect if `write` is not held."""
        fcntl.flock(write, fcntl.LOCK_UN)

    def _stand_in_line(self, timeout: float) -> Place:
        """A place that has come to its turn. One that was given up is taken again where it still stands in line: there
        is never more than one."""
        place, self._place = self._place, None
        if place is None or not place.take_again():
            place = Place(self._open_one(self._names[0]))
        if place.has_come(timeout):
            return place
        self._place = place
        raise DatabaseBusy(
            self._database,
            f"another process has been next in line for {timeout:g} s; if it was stopped, let it go on or end it",
        )

    def _take(self, write: int, deadline: float, timeout: float) -> None:
        # Asking again and again is fair here, since nobody else asks: everybody else waits for `next`.
        pause = _POLL_FIRST
        soon = _REAL.monotonic() + _SOON
        while not _try(write):
            now = _REAL.monotonic()
            if now > deadline:
                raise DatabaseBusy(self._database, f"another process has been writing for {timeout:g} s")
            _REAL.sleep(pause)
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
                # Whoever may write to the database must be able to wait for it.
                os.fchmod(made, os.stat(self._path).st_mode & 0o666)
                return made
            return os.open(name, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            kind = DatabaseReadOnly if isinstance(error, PermissionError) else DatabaseUnreachable
            raise kind(self._database, f"the lock file {os.path.basename(name)}: {error.strerror}") from None

    def close(self) -> None:
        """Let go of the files. In a fork's child this leaves the parent's locks as they are."""
        files, self._files = self._files, None
        self._place = None
        for file in files or ():
            with suppress(OSError):
                os.close(file)


def _try(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
