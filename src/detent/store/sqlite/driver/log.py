"""How long SQLite's write-ahead log is: by what is in it, not by the size of its file.

The file is kept when the log begins anew, since to write over it is cheaper than to lengthen it: a sync that lengthens
a file must write its length too. So the size says nothing. Each frame carries two numbers of the generation it belongs
to, which the head of the file has too: a look at one place tells whether this generation has come that far.

The log begins anew when all of it is copied back and no reader needs it any more. A reader that keeps its snapshot open
prevents that, and the log grows with every write. This is reported, and so is a checkpoint that fails.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress

from detent.model.facts import LogGrowth

__all__ = ["KEPT_BYTES", "LONG_BYTES", "Log"]

log = logging.getLogger("detent.store")

_FRAMES_MAX = 1000
_HEAD = 32
_FRAME_HEAD = 24
_GENERATION = slice(16, 24)
_GENERATION_OF_FRAME = 8
KEPT_BYTES = 5 << 20
"""What is kept of the file: the frames of a log that is copied back in time, and a large transaction more."""


LONG_BYTES = 64 << 20
"""A log of this length did not get there by writing alone: it is copied back every few megabytes."""
_READ_LOCKS = range(123, 128)
"""The bytes of the index beside the log (`-shm`) that SQLite locks for readers."""


class Log:
    """The log beside a database. SQLite takes no locks on this file, so it may be opened and closed by others; and it
    stays the same file for as long as one connection is open."""

    def __init__(self, path: str) -> None:
        self._path = f"{path}-wal"
        self._index = f"{path}-shm"
        self._file: int | None = None
        self._generation = b""
        self._frames = _FRAMES_MAX
        self._report_at = LONG_BYTES
        self._reported = ""

    def is_long(self) -> bool:
        """Whether it should be copied back."""
        if self._file is None:
            try:
                self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return False
        head = os.pread(self._file, _HEAD, 0)
        if head[_GENERATION] != self._generation:
            self._generation, self._frames = head[_GENERATION], _FRAMES_MAX
            self._report_at, self._reported = LONG_BYTES, ""
        frame = _HEAD + self._frames * (_FRAME_HEAD + int.from_bytes(head[8:12], "big"))
        found = os.pread(self._file, len(self._generation), frame + _GENERATION_OF_FRAME)
        return found != b"" and found == self._generation

    def copied(self) -> None:
        """Where a reader keeps it from beginning anew, the next try waits until it has grown as much once more."""
        self._frames += _FRAMES_MAX

    def growth(self) -> LogGrowth:
        """How long it is now. Of a log that is long, with the processes that read from it."""
        size = _size(self._path)
        is_long = size >= LONG_BYTES
        return LogGrowth(bytes=size, is_long=is_long, readers=_readers(self._index) if is_long else ())

    def has_outgrown(self) -> LogGrowth | None:
        """Whether it grows though it was copied back before: said when it has become long, and each time that it has
        doubled since. Asked after a checkpoint; one long transaction alone does not count."""
        if self._frames <= 2 * _FRAMES_MAX:
            return None
        found = self.growth()
        if found.bytes < self._report_at:
            return None
        self._report_at = 2 * found.bytes
        return found

    def report(self, what: str, database: str) -> None:
        """Log what is wrong with it; the same words once in a generation."""
        if what != self._reported:
            self._reported = what
            log.warning("%s: %s", database, what)

    def close(self) -> None:
        """Let go of the file."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                os.close(file)


def _size(path: str) -> int:
    """Return how many bytes of the file belong to the current generation of the log; 0 if there is no file. Its frames
    come first in the file, so the last of them is found by halving."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        head = os.pread(file, _HEAD, 0)
        if len(head) < _HEAD:
            return 0
        frame = _FRAME_HEAD + int.from_bytes(head[8:12], "big")
        generation = head[_GENERATION]
        within, beyond = 0, (os.fstat(file).st_size - _HEAD) // frame + 1
        while beyond - within > 1:
            middle = (within + beyond) // 2
            at = _HEAD + (middle - 1) * frame + _GENERATION_OF_FRAME
            if os.pread(file, len(generation), at) == generation:
                within = middle
            else:
                beyond = middle
        return _HEAD + within * frame if within else 0
    finally:
        os.close(file)


def _readers(path: str) -> tuple[int, ...]:
    """Return the processes that hold a reader's lock, where the system tells (Linux). The file itself is not opened: to
    close it again would drop the locks that SQLite holds in this process."""
    found: set[int] = set()
    with suppress(OSError, ValueError, IndexError):
        inode = os.stat(path).st_ino
        with open("/proc/locks") as locks:
            for line in locks:
                # 1: POSIX  ADVISORY  READ 4242 fd:01:123456 123 123
                parts = line.split()
                if parts[1] != "POSIX" or parts[3] != "READ" or int(parts[5].rpartition(":")[2]) != inode:
                    continue
                if int(parts[6]) in _READ_LOCKS and int(parts[4]) > 0:
                    found.add(int(parts[4]))
    return tuple(sorted(found))
