"""A bell for one thread that waits: rung by any thread, and by signals."""

from __future__ import annotations

import contextlib
import os
import select
import signal

__all__ = ["WakeupPipe"]


class WakeupPipe:
    """Rung before somebody waits, it is heard at once; rung often, it is heard once. Made of a pipe, so that a signal's
    handler may ring it whatever its thread is doing: an event has a lock that this very thread may hold."""

    def __init__(self) -> None:
        self._heard, self._rope = os.pipe()
        for end in (self._heard, self._rope):
            os.set_blocking(end, False)

    def ring(self) -> None:
        """From any thread or handler."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._rope, b"!")

    def rings_by_signals(self) -> None:
        """From now on every signal that has a handler rings. Only in the main thread."""
        signal.set_wakeup_fd(self._rope, warn_on_full_buffer=False)

    def wait(self, timeout: float) -> bool:
        """Until it is rung; False where it was not, in so many seconds."""
        poll = select.poll()
        poll.register(self._heard, select.POLLIN)
        # Rounded up: a wait that is a little too short would be begun again and again.
        rung = bool(poll.poll(int(timeout * 1000) + 1))
        with contextlib.suppress(BlockingIOError):
            while os.read(self._heard, 4096):
                pass
        return rung
