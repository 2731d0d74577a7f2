"""One thread that watches for transactions that stay open for too long.

A timer for each transaction would be a thread for each. This thread sleeps until the deadline of the transaction that
was open when it looked, and ends when none is open.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from detent.model.clock import SystemClock

__all__ = ["TransactionTimer"]

_CLOCK = SystemClock()


class _Ends(Protocol):
    ended: bool


E = TypeVar("E", bound=_Ends)


class TransactionTimer(Generic[E]):
    """Watches one transaction at a time. `act` is called, on the timer's thread, with one that missed its deadline."""

    def __init__(self, act: Callable[[E], None]) -> None:
        self._act = act
        self._changed = threading.Condition()
        self._open: E | None = None
        self._deadline = 0.0
        self._wakes_at = 0.0
        self._thread: threading.Thread | None = None

    def watch(self, opened: E, deadline: float) -> None:
        """Watch this transaction, in place of an earlier one, until this moment of the monotonic clock."""
        with self._changed:
            self._open, self._deadline = opened, deadline
            if self._thread is None:
                self._wakes_at = deadline
                self._thread = threading.Thread(target=self._serve, name="detent-timer", daemon=True)
                self._thread.start()
            elif deadline < self._wakes_at:
                self._changed.notify()

    def _serve(self) -> None:
        while (late := self._next_late()) is not None:
            self._act(late)

    def _next_late(self) -> E | None:
        """Wait for a transaction that misses its deadline. Return None if none is open."""
        with self._changed:
            while self._open is not None and not self._open.ended:
                left = self._deadline - _CLOCK.monotonic()
                if left <= 0:
                    late, self._open = self._open, None
                    return late
                self._wakes_at = self._deadline
                self._changed.wait(left)
            self._open = self._thread = None
            return None
