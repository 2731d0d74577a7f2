"""Wait for work in a SQLite file: an enqueue sends a signal; other commits change the file's version."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from contextlib import suppress

from detent.model.clock import Clock, SystemClock
from detent.store.sqlite.driver.wake_signal import WakeListener, WakeSignal

__all__ = ["SqliteWake"]

_SHORTEST = 0.001
_LONGEST = 0.02
_GROWTH = 1.2
_WATCHED_INTERVAL = 1.0
"""Seconds between two checks while the log is watched, as a safety net."""
_SIGNAL_DELAY = 0.005
"""Seconds to wait for the signal once the log was written to: an enqueue sends it after its commit."""
_POLL_SECONDS = 0.25
"""Seconds for which the version is polled once the log was written to: it changes when the log has reached the disk."""


class SqliteWake:
    """Every commit changes the version. A commit without a signal may bring work or not; most are about the workers
    themselves. So the waiter checks whether there is work before it claims."""

    def __init__(
        self, version: Callable[[], int], is_work: Callable[[], bool], signal: WakeSignal, clock: Clock | None = None
    ) -> None:
        self._version = version
        self._is_work = is_work
        self._signal = signal
        self._clock = clock or SystemClock()
        self._listener: WakeListener | None = None
        self._pipe: tuple[int, int] | None = None
        self._pid = os.getpid()
        self._delay = _SIGNAL_DELAY
        self._changed_at = 0.0

    @property
    def is_sure(self) -> bool:
        """Always true: every change of the file is noticed."""
        return True

    def version(self, timeout: float = 2.0) -> int:
        """Return the file's version. Signals sent before this call are ignored."""
        self._open()
        self._poll(0.0)
        return self._version()

    def wait(self, version: int, timeout: float) -> bool:
        """Wait for a signal, an interrupt, or another commit after which there is work. Return False after `timeout`.
        Without a listener the version is polled, often at first, then less."""
        deadline = self._clock.monotonic() + timeout
        poll_until = 0.0
        pause = _SHORTEST
        while True:
            now = self._clock.monotonic()
            # Watch before reading the version: a write in between is reported.
            watched = self._listener is not None and now >= poll_until and self._listener.watch_log()
            if (found := self._version()) != version:
                if self._is_work():
                    return True
                version, poll_until = found, 0.0
                self._note_useless_wakeup(now)
                if self._listener is not None and not watched:
                    continue
            if now >= deadline:
                return False
            signalled, written = self._poll(min(deadline - now, _WATCHED_INTERVAL if watched else pause))
            pause = min(pause * _GROWTH, _LONGEST)
            if written and not signalled:
                pause, poll_until = _SHORTEST, self._clock.monotonic() + _POLL_SECONDS
                signalled, _ = self._poll(self._delay)
            if signalled:
                return True

    def notify(self) -> None:
        """Wake all waiters: work was committed."""
        if self._listener is None:
            self.interrupt()
        self._signal.send()

    def interrupt(self) -> None:
        """End the wait of this process."""
        if self._pipe is not None:
            with suppress(BlockingIOError):
                os.write(self._pipe[1], b"!")

    def close(self) -> None:
        """Stop listening."""
        listener, self._listener = self._listener, None
        pipe, self._pipe = self._pipe, None
        if self._pid == os.getpid() and listener is not None:
            listener.close()
        for end in pipe or ():
            os.close(end)
        self._signal.close()

    def _note_useless_wakeup(self, now: float) -> None:
        """Check less often if other processes commit all the time without bringing work."""
        self._delay = min(2 * self._delay, _LONGEST) if now - self._changed_at < _POLL_SECONDS else _SIGNAL_DELAY
        self._changed_at = now

    def _open(self) -> None:
        if os.getpid() != self._pid:
            # The listener and the pipe belong to the parent.
            self._pid, self._listener, self._pipe = os.getpid(), None, None
        if self._pipe is None:
            self._pipe = os.pipe()
            for end in self._pipe:
                os.set_blocking(end, False)
            self._listener = self._signal.listen()
        elif self._listener is not None and not self._listener.watch_signal_again():
            self._listener.close()
            self._listener = None

    def _poll(self, timeout: float) -> tuple[bool, bool]:
        """Wait. Return whether a signal or an interrupt came, and whether the log was written to."""
        poll = select.poll()
        pipe, listener = self._pipe, self._listener
        if pipe is not None:
            poll.register(pipe[0], select.POLLIN)
        if listener is not None:
            poll.register(listener.fileno, select.POLLIN)
        ready = {file for file, _ in poll.poll(timeout * 1000)}
        signalled = written = False
        if pipe is not None and pipe[0] in ready:
            signalled = True
            with suppress(BlockingIOError):
                while os.read(pipe[0], 1024):
                    pass
        if listener is not None and listener.fileno in ready:
            events = listener.read_events()
            signalled, written = signalled or events[0], events[1]
        return signalled, written
