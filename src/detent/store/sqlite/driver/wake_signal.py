"""A signal between processes that share a SQLite file: new work was committed.

To send it, a process reads one byte of the lock file `write`; listeners watch that file with inotify. They also learn
that the write-ahead log was written to, by any program: a commit is coming. A process that dies leaves nothing behind.
On systems without inotify nothing is received, and waiters poll the file's version.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
from contextlib import suppress

__all__ = ["WakeListener", "WakeSignal"]

_IN_ACCESS = 0x1
_IN_MODIFY = 0x2
_IN_ONESHOT = 0x80000000
_EVENT = struct.Struct("iIII")
_READ_MAX = 16 * 1024


class WakeSignal:
    """Safe from any thread and across forks. Sending never fails; at worst it is not received."""

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else f"{path}-detent-write"
        self._log_path = f"{path}-wal"
        self._lock = threading.Lock()
        self._file: int | None = None

    def send(self) -> None:
        """Wake the listeners of every process."""
        try:
            if (file := self._file or self._open()) is not None:
                os.pread(file, 1, 0)
        except OSError:
            return

    def listen(self) -> WakeListener | None:
        """Return a listener; None if the system has no inotify, or it does not work on this file system."""
        if self._path is None or sys.platform != "linux":
            return None
        try:
            listener = WakeListener(self._path, self._log_path)
        except OSError:
            return None
        # Try it: a file system may accept the watch and report nothing.
        self.send()
        if listener.read_events()[0]:
            return listener
        listener.close()
        return None

    def close(self) -> None:
        """Close the file. `send` opens it again."""
        with self._lock:
            file, self._file = self._file, None
            if file is not None:
                os.close(file)

    def _open(self) -> int | None:
        if self._path is None:
            return None
        with self._lock:
            if self._file is None:
                file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
                # Reading from an empty file is not reported.
                if not os.fstat(file).st_size:
                    os.pwrite(file, b"\n", 0)
                self._file = file
            return self._file


class WakeListener:
    """Receives signals, for one thread of one process."""

    def __init__(self, signal_path: str, log_path: str) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._signal_path = os.fsencode(signal_path)
        self._log_path = os.fsencode(log_path)
        self.fileno = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        try:
            self._signal_watch = self._watch(self._signal_path, _IN_ACCESS)
        except OSError:
            self.close()
            raise

    def watch_signal_again(self) -> bool:
        """Watch the file that has the name now, in case it was replaced. Return False if there is none."""
        try:
            self._signal_watch = self._watch(self._signal_path, _IN_ACCESS)
        except OSError:
            return False
        return True

    def watch_log(self) -> bool:
        """Report the next write to the log, once. Return False if that is not possible."""
        try:
            self._watch(self._log_path, _IN_MODIFY | _IN_ONESHOT)
        except OSError:
            return False
        return True

    def read_events(self) -> tuple[bool, bool]:
        """Return whether a signal was sent since the last call, and whether the log was written to."""
        signalled = written = False
        with suppress(BlockingIOError):
            while data := os.read(self.fileno, _READ_MAX):
                offset = 0
                while offset < len(data):
                    watch, mask, _, name_size = _EVENT.unpack_from(data, offset)
                    offset += _EVENT.size + name_size
                    # An overflow of the queue has watch -1: a signal may have been lost.
                    signalled = signalled or watch in (self._signal_watch, -1)
                    written = written or bool(mask & _IN_MODIFY)
        return signalled, written

    def close(self) -> None:
        """Stop listening."""
        os.close(self.fileno)

    def _watch(self, path: bytes, mask: int) -> int:
        return self._checked(self._libc.inotify_add_watch(self.fileno, path, ctypes.c_uint32(mask)))

    def _checked(self, answer: int) -> int:
        if answer < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return answer
