"""A bell beside the file: whoever has committed work rings, and everybody who listens hears it at once.

There is nothing to be left behind by a process that dies, nobody to be rung who is not there, and no file of its own:
to ring is to read a byte of the lock file `write`, and the system tells those who watch that file (inotify). They are
also told when the file's log is written to, by whomever: another commit is on its way then. Where the system has no
such thing nobody hears anything, and whoever waits has to look by itself.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
from contextlib import suppress

__all__ = ["Bell", "Ears"]

_IN_ACCESS = 0x1
_IN_MODIFY = 0x2
_IN_ONESHOT = 0x80000000
_EVENT = struct.Struct("iIII")
_READ_MAX = 16 * 1024


class Bell:
    """Safe from any thread and across forks. Ringing never fails: it is only not heard."""

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else f"{path}-detent-write"
        self._log = f"{path}-wal"
        self._lock = threading.Lock()
        self._rope: int | None = None

    def ring(self) -> None:
        """Let everybody hear it who listens, in whatever process."""
        try:
            if (rope := self._rope or self._take_rope()) is not None:
                os.pread(rope, 1, 0)
        except OSError:
            return

    def ears(self) -> Ears | None:
        """Somebody who listens from now on; None where that is not to be had."""
        if self._path is None or sys.platform != "linux":
            return None
        try:
            ears = Ears(self._path, self._log)
        except OSError:
            return None
        self.ring()
        # Seen to be heard: a file system may promise it and not keep it.
        if ears.heard()[0]:
            return ears
        ears.close()
        return None

    def close(self) -> None:
        """Let go of the file. Rung again, it is opened again."""
        with self._lock:
            rope, self._rope = self._rope, None
            if rope is not None:
                os.close(rope)

    def _take_rope(self) -> int | None:
        if self._path is None:
            return None
        with self._lock:
            if self._rope is None:
                rope = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
                # To read nothing is not to read.
                if not os.fstat(rope).st_size:
                    os.pwrite(rope, b"\n", 0)
                self._rope = rope
            return self._rope


class Ears:
    """One who listens: for one thread of one process."""

    def __init__(self, bell: str, log: str) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._bell = os.fsencode(bell)
        self._log = os.fsencode(log)
        self.fileno = self._asked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        try:
            self._bell_number = self._watch(self._bell, _IN_ACCESS)
        except OSError:
            self.close()
            raise

    def again(self) -> bool:
        """Watch the file that has this name now, should it be another one; False where there is none."""
        try:
            self._bell_number = self._watch(self._bell, _IN_ACCESS)
        except OSError:
            return False
        return True

    def watch_log(self) -> bool:
        """Hear of the next write to the log, and of no more; False where that is not to be had."""
        try:
            self._watch(self._log, _IN_MODIFY | _IN_ONESHOT)
        except OSError:
            return False
        return True

    def heard(self) -> tuple[bool, bool]:
        """Whether the bell was rung since this was last asked, and whether the log was written to."""
        rung = written = False
        with suppress(BlockingIOError):
            while data := os.read(self.fileno, _READ_MAX):
                place = 0
                while place < len(data):
                    number, mask, _, name_size = _EVENT.unpack_from(data, place)
                    place += _EVENT.size + name_size
                    # A queue that has overflown says so without a number: anything may have been in it.
                    rung = rung or number in (self._bell_number, -1)
                    written = written or bool(mask & _IN_MODIFY)
        return rung, written

    def close(self) -> None:
        """Listen no more."""
        os.close(self.fileno)

    def _watch(self, path: bytes, mask: int) -> int:
        return self._asked(self._libc.inotify_add_watch(self.fileno, path, ctypes.c_uint32(mask)))

    def _asked(self, answer: int) -> int:
        if answer < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return answer
