"""The length of SQLite's write-ahead log, measured by its content.

The size of the file does not tell. When the log is reset, the file is kept, because overwriting it is cheaper than
making it longer: a sync would have to write the new length too. Each frame has two salt values of its generation, which
are also in the file's header. So one read at an offset tells whether the current generation reaches it.

The log is reset when a checkpoint has copied all of it and no reader needs it. A reader that keeps its snapshot open
prevents that, and the log grows with every write. That is reported, and so is a checkpoint that fails.

A sync that fails may leave a hole: the system can drop what it could not write, and report success at the next sync.
Recovery ends at a hole, and everything after it would be lost. Before anything is added, the log is written again.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress

from detent.model.database_facts import LogGrowth

__all__ = ["KEPT_BYTES", "LONG_BYTES", "WriteAheadLog"]

log = logging.getLogger("detent.store")

_FRAMES_MAX = 1000
_HEADER = 32
_FRAME_HEADER = 24
_GENERATION = slice(16, 24)
_GENERATION_OF_FRAME = 8
KEPT_BYTES = 5 << 20
"""The file is truncated to this size after a reset: enough for a log that is checkpointed in time."""
LONG_BYTES = 64 << 20
"""A log of this length was kept from being reset: a checkpoint runs every few megabytes."""
_PIECE_BYTES = 1 << 20
_READ_LOCKS = range(123, 128)
"""The bytes of the log's index file (`-shm`) that SQLite locks for readers."""


class WriteAheadLog:
    """The log of a database. SQLite takes no locks on this file, so it is safe to open and close it. It stays the same
    file for as long as a connection is open."""

    def __init__(self, path: str) -> None:
        self._path = f"{path}-wal"
        self._index = f"{path}-shm"
        self._file: int | None = None
        self._generation = b""
        self._frames = _FRAMES_MAX
        self._report_at = LONG_BYTES
        self._reported = ""
        self.is_doubtful = False
        """Whether a sync has failed since the log was last known to be on disk."""

    def is_long(self) -> bool:
        """Return whether a checkpoint is due."""
        if self._file is None:
            try:
                self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return False
        header = os.pread(self._file, _HEADER, 0)
        if header[_GENERATION] != self._generation:
            self._generation, self._frames = header[_GENERATION], _FRAMES_MAX
            self._report_at, self._reported = LONG_BYTES, ""
        frame = _HEADER + self._frames * (_FRAME_HEADER + int.from_bytes(header[8:12], "big"))
        found = os.pread(self._file, len(self._generation), frame + _GENERATION_OF_FRAME)
        return found != b"" and found == self._generation

    def note_checkpoint(self) -> None:
        """If a reader prevents the reset, let the next checkpoint wait until the log has grown by as much again."""
        self._frames += _FRAMES_MAX

    def write_again(self) -> None:
        """Write the current generation over itself, and sync it: the system still has in memory what it could not
        write. The caller holds SQLite's write lock. Raises OSError."""
        file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            for at in range(0, _size(self._path), _PIECE_BYTES):
                os.pwrite(file, os.pread(file, _PIECE_BYTES, at), at)
            os.fsync(file)
        finally:
            os.close(file)
        self.is_doubtful = False

    def growth(self) -> LogGrowth:
        """Return how long the log is; if it is long, with the processes that read from it."""
        size = _size(self._path)
        is_long = size >= LONG_BYTES
        return LogGrowth(bytes=size, is_long=is_long, readers=_readers(self._index) if is_long else ())

    def growth_to_report(self) -> LogGrowth | None:
        """Return the growth of a log that stays long after several checkpoints: once when it becomes long, and again
        each time it has doubled."""
        if self._frames <= 2 * _FRAMES_MAX:
            return None
        found = self.growth()
        if found.bytes < self._report_at:
            return None
        self._report_at = 2 * found.bytes
        return found

    def report(self, what: str, database: str) -> None:
        """Log a problem, the same message once per generation."""
        if what != self._reported:
            self._reported = what
            log.warning("%s: %s", database, what)

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                os.close(file)


def _size(path: str) -> int:
    """Return how many bytes belong to the current generation; 0 if there is no file. Its frames come first in the
    file, so the last one is found by bisection."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        header = os.pread(file, _HEADER, 0)
        if len(header) < _HEADER:
            return 0
        frame = _FRAME_HEADER + int.from_bytes(header[8:12], "big")
        generation = header[_GENERATION]
        within, beyond = 0, (os.fstat(file).st_size - _HEADER) // frame + 1
        while beyond - within > 1:
            middle = (within + beyond) // 2
            at = _HEADER + (middle - 1) * frame + _GENERATION_OF_FRAME
            if os.pread(file, len(generation), at) == generation:
                within = middle
            else:
                beyond = middle
        return _HEADER + within * frame if within else 0
    finally:
        os.close(file)


def _readers(path: str) -> tuple[int, ...]:
    """Return the processes that hold a reader's lock (Linux only). The file is not opened: closing it would drop the
    locks that SQLite holds in this process."""
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
