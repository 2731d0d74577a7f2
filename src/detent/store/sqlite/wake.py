"""Waiting for work in one file: whoever waits looks at the file's version, often at first, then less."""

from __future__ import annotations

import threading
from collections.abc import Callable

from detent.model.clock import Clock, SystemClock

__all__ = ["SqliteWake"]

_SHORTEST = 0.001
_LONGEST = 0.02
_GROWTH = 1.2


class SqliteWake:
    """Every commit by anybody changes the version; so a look costs microseconds, and claims are made only after it."""

    def __init__(self, version: Callable[[], int], clock: Clock | None = None) -> None:
        self._version = version
        self._clock = clock or SystemClock()
        self._rung = threading.Event()

    @property
    def is_sure(self) -> bool:
        """Nobody can change the file unseen."""
        return True

    def version(self, timeout: float = 2.0) -> int:
        """The file's version as this process sees it."""
        self._rung.clear()
        return self._version()

    def wait(self, version: int, timeout: float) -> bool:
        """Look again and again, a little later each time, so that a quiet night costs nothing; what this process itself
        enqueues is told at once."""
        deadline = self._clock.monotonic() + timeout
        pause = _SHORTEST
        while self._version() == version:
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return False
            if self._rung.wait(min(pause, left)):
                return True
            pause = min(pause * _GROWTH, _LONGEST)
        return True

    def interrupt(self) -> None:
        """Nobody waits any longer."""
        self._rung.set()
