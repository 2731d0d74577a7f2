"""Waiting for work in one file: whoever enqueues rings; what others commit is seen by the file's version."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from contextlib import suppress

from detent.model.clock import Clock, SystemClock
from detent.store.sqlite.driver.bell import Bell, Ears

__all__ = ["SqliteWake"]

_SHORTEST = 0.001
_LONGEST = 0.02
_GROWTH = 1.2
_WATCHED = 1.0
"""Seconds between two looks where the log is watched, for the sake of what nobody thought of."""
_PATIENT = 0.005
"""Seconds to wait for the bell once the log was written to: whoever brings work rings when it has committed."""
_RESTLESS = 0.25
"""Seconds for which the version is looked at again and again, once the log was written to: it changes when the log has
reached the disk."""


class SqliteWake:
    """Every commit by anybody changes the version. One that nobody rang for may bring work or not, as most do that
    workers make about themselves: so it is looked whether there is any, before somebody claims."""

    def __init__(
        self, version: Callable[[], int], is_work: Callable[[], bool], bell: Bell, clock: Clock | None = None
    ) -> None:
        self._version = version
        self._is_work = is_work
        self._bell = bell
        self._clock = clock or SystemClock()
        self._ears: Ears | None = None
        self._pipe: tuple[int, int] | None = None
        self._pid = os.getpid()
        self._delay = _PATIENT
        self._changed_at = 0.0

    @property
    def is_sure(self) -> bool:
        """Nobody can change the file unseen."""
        return True

    def version(self, timeout: float = 2.0) -> int:
        """The file's version as this process sees it; what was rung before this is old news."""
        self._be_there()
        self._heard(0.0)
        return self._version()

    def wait(self, version: int, timeout: float) -> bool:
        """Until the bell is rung, an interrupt, or a commit that nobody rang for after which there is work; the end of
        the time. Where nobody hears bells the version is looked at, often at first, then less."""
        deadline = self._clock.monotonic() + timeout
        restless_until = 0.0
        pause = _SHORTEST
        while True:
            now = self._clock.monotonic()
            # Watched before it is looked at: what is written in between is heard.
            watched = self._ears is not None and now >= restless_until and self._ears.watch_log()
            if (found := self._version()) != version:
                if self._is_work():
                    return True
                version, restless_until = found, 0.0
                self._came_for_nothing(now)
                if self._ears is not None and not watched:
                    continue
            if now >= deadline:
                return False
            rung, written = self._heard(min(deadline - now, _WATCHED if watched else pause))
            pause = min(pause * _GROWTH, _LONGEST)
            if written and not rung:
                pause, restless_until = _SHORTEST, self._clock.monotonic() + _RESTLESS
                rung, _ = self._heard(self._delay)
            if rung:
                return True

    def ring(self) -> None:
        """Work was committed: let everybody know."""
        if self._ears is None:
            self.interrupt()
        self._bell.ring()

    def interrupt(self) -> None:
        """Nobody in this process waits any longer."""
        if self._pipe is not None:
            with suppress(BlockingIOError):
                os.write(self._pipe[1], b"!")

    def close(self) -> None:
        """Listen no more."""
        ears, self._ears = self._ears, None
        pipe, self._pipe = self._pipe, None
        if self._pid == os.getpid() and ears is not None:
            ears.close()
        for end in pipe or ():
            os.close(end)
        self._bell.close()

    def _came_for_nothing(self, now: float) -> None:
        """Where others commit all the time, and none of it is for us, it is looked at more rarely."""
        self._delay = min(2 * self._delay, _LONGEST) if now - self._changed_at < _RESTLESS else _PATIENT
        self._changed_at = now

    def _be_there(self) -> None:
        if os.getpid() != self._pid:
            # What a parent listens with is the parent's.
            self._pid, self._ears, self._pipe = os.getpid(), None, None
        if self._pipe is None:
            self._pipe = os.pipe()
            for end in self._pipe:
                os.set_blocking(end, False)
            self._ears = self._bell.ears()
        elif self._ears is not None and not self._ears.again():
            self._ears.close()
            self._ears = None

    def _heard(self, timeout: float) -> tuple[bool, bool]:
        """Whether somebody rang or interrupted, and whether the log was written to, within so many seconds."""
        poll = select.poll()
        pipe, ears = self._pipe, self._ears
        if pipe is not None:
            poll.register(pipe[0], select.POLLIN)
        if ears is not None:
            poll.register(ears.fileno, select.POLLIN)
        ready = {file for file, _ in poll.poll(timeout * 1000)}
        rung = written = False
        if pipe is not None and pipe[0] in ready:
            rung = True
            with suppress(BlockingIOError):
                while os.read(pipe[0], 1024):
                    pass
        if ears is not None and ears.fileno in ready:
            heard = ears.heard()
            rung, written = rung or heard[0], heard[1]
        return rung, written
