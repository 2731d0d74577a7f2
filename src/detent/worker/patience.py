"""What to do while the database is away: wait a little longer each time, and say so at most once a second."""

from __future__ import annotations

import logging
import threading

from detent.model.clock import Clock

__all__ = ["Patience"]

_FIRST = 0.05
_LONGEST = 5.0
_WHILE_STOPPING = 0.1
_SAY_EVERY = 1.0

log = logging.getLogger("detent.worker")


class Patience:
    """Shared by the threads of one process, so that together they speak once a second. `stop` cuts every wait short."""

    def __init__(self, clock: Clock, stop: threading.Event, *, longest: float = _LONGEST) -> None:
        self._clock = clock
        self._longest = min(longest, _LONGEST)
        self._stop = stop
        self._lock = threading.Lock()
        self._wait = _FIRST
        self._said_at = -_SAY_EVERY
        self._silent = 0
        self.away_since: float | None = None

    def failed(self, doing: str, error: BaseException) -> None:
        """Say so if nobody did within the last second, and wait."""
        with self._lock:
            now = self._clock.monotonic()
            if self.away_since is None:
                self.away_since = now
            wait = self._wait
            self._wait = min(self._wait * 2, self._longest)
            self._say(f"{doing} failed, trying again", error, now)
        if self._stop.wait(wait):
            self._clock.sleep(_WHILE_STOPPING)

    def refused(self, what: str, error: BaseException) -> None:
        """Say that something was refused for good, if nobody spoke within the last second."""
        with self._lock:
            self._say(what, error, self._clock.monotonic())

    def _say(self, what: str, error: BaseException, now: float) -> None:
        if now - self._said_at < _SAY_EVERY:
            self._silent += 1
            return
        more = f" ({self._silent} more since)" if self._silent else ""
        log.warning("%s: %s%s", what, str(error).partition("\n")[0], more)
        self._said_at, self._silent = now, 0

    def worked(self) -> None:
        """The database answers again."""
        if self.away_since is None:
            return
        with self._lock:
            if self.away_since is not None:
                log.info("the database answers again after %.1f s", self._clock.monotonic() - self.away_since)
            self._wait = _FIRST
            self.away_since = None
