"""A look at the time while transactions come and go: what is still open when its time is over is acted upon.

A timer for each would be a thread for each. Here one thread sleeps until the time of the transaction that it found open
is over; what has begun meanwhile has its time later, nearly always. It ends where it finds nothing open.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from detent.model.clock import SystemClock

__all__ = ["Watch"]

_REAL = SystemClock()


class _Ends(Protocol):
    ended: bool


E = TypeVar("E", bound=_Ends)


class Watch(Generic[E]):
    """Over one thing at a time; `act` is called, from a thread of its own, with one that is open for too long."""

    def __init__(self, act: Callable[[E], None]) -> None:
        self._act = act
        self._changed = threading.Condition()
        self._open: E | None = None
        self._until = 0.0
        self._wakes_at = 0.0
        self._thread: threading.Thread | None = None

    def over(self, opened: E, until: float) -> None:
        """Watch over this one, in place of whatever came before, until that moment of the monotonic clock."""
        with self._changed:
            self._open, self._until = opened, until
            if self._thread is None:
                self._wakes_at = until
                self._thread = threading.Thread(target=self._serve, name="detent-watch", daemon=True)
                self._thread.start()
            elif until < self._wakes_at:
                self._changed.notify()

    def _serve(self) -> None:
        while (late := self._sleep()) is not None:
            self._act(late)

    def _sleep(self) -> E | None:
        """The one whose time is over; None where nothing is open."""
        with self._changed:
            while self._open is not None and not self._open.ended:
                left = self._until - _REAL.monotonic()
                if left <= 0:
                    late, self._open = self._open, None
                    return late
                self._wakes_at = self._until
                self._changed.wait(left)
            self._open = self._thread = None
            return None
