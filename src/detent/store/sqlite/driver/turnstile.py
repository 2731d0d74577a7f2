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
    """A lock that is handed over in the order of asking. The thread that holds it may not ask again."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self._held = False
        self._owner: int | None = None

    @property
    def held(self) -> bool:
        """Whether anybody holds it."""
        return self._held

    @property
    def waiting(self) -> int:
        """How many stand in line."""
        return len(self._waiting)

    def acquire(self, timeout: float) -> bool:
        """Wait for one's turn, at most `timeout` seconds. `WrongPlace` where this thread holds it already."""
        self.check_owner()
        with self._mutex:
            if not self._held:
                self._held = True
                self._owner = threading.get_ident()
                return True
            gate = threading.Lock()
            gate.acquire()
            self._waiting.append(gate)
        try:
            come = gate.acquire(timeout=timeout)
        except BaseException:
            self._step_aside(gate)
            raise
        if not come and self._leave(gate):
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

    def release(self) -> None:
        """Hand it to the first in line."""
        self._owner = None
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False

    def hand_over(self) -> bool:
        """Hand it to the first in line, if there is one; False where nobody waits, and it is still held."""
        with self._mutex:
            if not self._waiting:
                return False
            self._owner = None
            self._waiting.popleft().release()
            return True

    def lend(self, thread: int | None) -> None:
        """What is done under it goes on in that thread; None where it is between two."""
        self._owner = thread

    def _leave(self, gate: threading.Lock) -> bool:
        """Out of the line; False where the turn came in the same moment."""
        with self._mutex, suppress(ValueError):
            self._waiting.remove(gate)
            return True
        return False

    def _step_aside(self, gate: threading.Lock) -> None:
        if not self._leave(gate):
            self.release()


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
        """Let the next one come."""
        # Said, and not only by closing: a process that was forked meanwhile has the file open too.
        fcntl.flock(self._file, fcntl.LOCK_UN)
        os.close(self._file)

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

    def enter(self, timeout: float) -> int:
        """Hold `write`, and give it, to be given back to `leave`. `DatabaseBusy` where that takes more than `timeout`
        seconds: the writer in front, or whoever waits for it, is slow or stands still."""
        turn, write = self._open()
        deadline = _REAL.monotonic() + timeout
        place = None if _try(turn) else self._stand_in_line(timeout)
        try:
            self._take(write, deadline, timeout)
        finally:
            if place is None:
                fcntl.flock(turn, fcntl.LOCK_UN)
            else:
                place.leave()
        return write

    def leave(self, write: int) -> None:
        """Let the next one in."""
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
