"""What a process does while the database is unavailable: log the failure and wait, longer each time."""

from __future__ import annotations

import logging
import threading

from detent.model.clock import Clock
from detent.worker.log_limit import DATABASE

__all__ = ["OutageBackoff"]

_FIRST = 0.05
_LONGEST = 5.0
_WHILE_STOPPING = 0.1

log = logging.getLogger("detent.worker")


class OutageBackoff:
    """Shared by the threads of one process. `stop` ends every wait. `log_limit` limits the rate of its log lines."""

    def __init__(self, clock: Clock, stop: threading.Event, *, longest: float = _LONGEST) -> None:
        self._clock = clock
        self._longest = min(longest, _LONGEST)
        self._stop = stop
        self._lock = threading.Lock()
        self._wait = _FIRST
        self.away_since: float | None = None

    def failed(self, doing: str, error: BaseException) -> None:
        """Log that `doing` failed, and wait before the caller tries again."""
        with self._lock:
            now = self._clock.monotonic()
            if self.away_since is None:
                self.away_since = now
            wait = self._wait
            self._wait = min(self._wait * 2, self._longest)
        log.warning("%s failed, trying again: %s", doing, _first_line(error), extra=DATABASE)
        if self._stop.wait(wait):
            self._clock.sleep(_WHILE_STOPPING)

    def refused(self, what: str, error: BaseException) -> None:
        """Log that the database refused something for good. The caller does not try again."""
        log.warning("%s: %s", what, _first_line(error))

    def worked(self) -> None:
        """Note that the database answers, and log the end of an outage."""
        if self.away_since is None:
            return
        with self._lock:
            if self.away_since is not None:
                log.info("the database answers again after %.1f s", self._clock.monotonic() - self.away_since)
            self._wait = _FIRST
            self.away_since = None


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
