"""Limits the rate of log lines: at most two in two seconds for one cause, over all processes of a worker (G6).

A loop that fails can log at any rate, and each process of a worker has several loops. So a filter on Detent's loggers
counts for all of them, in memory that the supervisor shares with its children. A line that passes says how many lines
of its cause were left out before it.

Lines have the same cause if they come from the same logging call. A call can name another cause with
`extra={"cause": "..."}`: every report of an unavailable database does so. The user's own log lines are not limited.
"""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from msgspec.structs import replace

from detent.model.clock import Clock, SystemClock
from detent.worker.options import WorkerOptions
from detent.worker.shared_memory_file import open_unnamed_file

__all__ = ["DAMAGE", "DATABASE", "LINES_MAX", "LOGGERS", "SECONDS", "LogLimit", "limit_log", "share_log_limit"]

LINES_MAX = 2
SECONDS = 2.0
"""Two lines may come at once; over a longer time it is one line a second."""

DATABASE = {"cause": "database"}
"""For `extra=`: the database is unavailable."""

DAMAGE = {"cause": "damage", "lines": 1}
"""For `extra=`: the database is damaged. One line at a time, because all threads report the same damage, and there is
an alert too."""

LOGGERS = (
    "detent.alerts",
    "detent.app",
    "detent.batch",
    "detent.limits",
    "detent.schedule",
    "detent.server",
    "detent.store",
    "detent.webhooks",
    "detent.worker",
)

_SLOT = struct.Struct("=QddQ")
"""The cause; the times of its last line and of the line before; how many lines were left out since."""
_SLOTS = 128
_PROBES = 8
_LOCK_TRIES = 3
_LOCK_PAUSE = 0.001


class LogLimit(logging.Filter):
    """A filter that counts in a shared file. Safe from any thread and across forks.

    It never waits for more than a few milliseconds: if another process was stopped while it held the lock, a line too
    many may be logged.
    """

    def __init__(self, fileno: int, clock: Clock | None = None) -> None:
        super().__init__()
        self.fileno = fileno
        self._clock = clock or SystemClock()
        self._map = mmap.mmap(fileno, _SLOTS * _SLOT.size)
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    @classmethod
    def create(cls, clock: Clock | None = None) -> LogLimit:
        """Create a limit with a new file."""
        file = open_unnamed_file()
        os.ftruncate(file, _SLOTS * _SLOT.size)
        return cls(file, clock)

    def _begin(self) -> None:
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line may be logged. Adds the number of lines that were left out before it."""
        cause = getattr(record, "cause", None) or f"{record.name}: {record.msg}"
        left_out = self._admit(_number(cause), getattr(record, "lines", LINES_MAX))
        if left_out:
            record.msg, record.args = f"{record.getMessage()} ({left_out} similar lines left out)", None
        return left_out is not None

    def _admit(self, cause: int, lines: int) -> int | None:
        """Return how many lines of this cause were left out before this one; None if this one is left out too."""
        with self._locked():
            now = self._clock.monotonic()
            place, last, before, left_out = self._find(cause)
            admitted = now - (before if lines == LINES_MAX else last) >= SECONDS
            written = (now, last, 0) if admitted else (last, before, left_out + 1)
            _SLOT.pack_into(self._map, place, cause, *written)
            return left_out if admitted else None

    def _find(self, cause: int) -> tuple[int, float, float, int]:
        """Return the place of a cause, the times of its last two lines, and how many were left out since. A new cause
        takes a free place, or that of the cause whose last line is the oldest."""
        oldest: tuple[float, int] | None = None
        for probe in range(_PROBES):
            place = (cause + probe) % _SLOTS * _SLOT.size
            found, last, before, left_out = _SLOT.unpack_from(self._map, place)
            if found == cause:
                return place, last, before, left_out
            if not found:
                oldest = (-1.0, place)
                break
            if oldest is None or last < oldest[0]:
                oldest = (last, place)
        assert oldest is not None
        return oldest[1], -SECONDS, -SECONDS, 0

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock:
            held = self._lock_file()
            try:
                yield
            finally:
                if held:
                    fcntl.lockf(self.fileno, fcntl.LOCK_UN)

    def _lock_file(self) -> bool:
        for _ in range(_LOCK_TRIES):
            with suppress(OSError):
                fcntl.lockf(self.fileno, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            self._clock.sleep(_LOCK_PAUSE)
        return False


def _number(cause: str) -> int:
    """Return a number for a cause, the same in every process and never 0."""
    return zlib.crc32(cause.encode("utf-8", "replace")) + 1


def limit_log(options: WorkerOptions) -> None:
    """Limit what Detent logs in this process, counting together with the other processes of the worker."""
    _install(LogLimit(options.log_limit_fd) if options.log_limit_fd >= 0 else LogLimit.create())


def share_log_limit(options: WorkerOptions) -> WorkerOptions:
    """Limit what Detent logs in this process; return options for the children with which they count together."""
    limit = LogLimit.create()
    _install(limit)
    return replace(options, log_limit_fd=limit.fileno)


def _install(limit: LogLimit) -> None:
    for name in LOGGERS:
        logger = logging.getLogger(name)
        for old in [one for one in logger.filters if isinstance(one, LogLimit)]:
            logger.removeFilter(old)
        logger.addFilter(limit)
