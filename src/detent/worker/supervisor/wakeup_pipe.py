"""A wake-up for one waiting thread, from any thread and from signal handlers."""

from __future__ import annotations

import contextlib
import os
import select
import signal

__all__ = ["WakeupPipe"]


class WakeupPipe:
    """Wakes a thread that waits. A wake-up before the wait ends it at once; several count as one.

    It is made of a pipe so that a signal handler may use it at any time. An event has a lock, which the interrupted
    thread may hold.
    """

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        for end in (self._reading, self._writing):
            os.set_blocking(end, False)

    def wake(self) -> None:
        """Wake the waiting thread. Safe from any thread and from signal handlers."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._writing, b"!")

    def wake_on_signals(self) -> None:
        """From now on every signal that has a handler wakes the thread. Only in the main thread."""
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)

    def wait(self, timeout: float) -> bool:
        """Wait for a wake-up; return False if none came within `timeout` seconds."""
        poll = select.poll()
        poll.register(self._reading, select.POLLIN)
        # Rounded up: a wait that is a little too short would be repeated again and again.
        woken = bool(poll.poll(int(timeout * 1000) + 1))
        with contextlib.suppress(BlockingIOError):
            while os.read(self._reading, 4096):
                pass
        return woken
