"""What another thread will have to say.

Like a `concurrent.futures.Future`, whose condition and list of waiters cost as much as a job's way into the database:
here a lock, and whoever is to be told.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Generic, Literal, TypeVar

__all__ = ["Answer"]

T = TypeVar("T")


class Answer(Generic[T]):
    """Given once, from any thread: `set_result` or `set_exception`. Until somebody has begun, it can be cancelled."""

    __slots__ = ("_error", "_lock", "_state", "_tell", "_value")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state: Literal["open", "begun", "done", "cancelled"] = "open"
        self._tell: Callable[[], None] | None = None
        self._error: BaseException | None = None
        self._value: T

    def begin(self) -> bool:
        """From now on it cannot be cancelled. False where it was. Beginning twice is once."""
        with self._lock:
            if self._state == "open":
                self._state = "begun"
            return self._state != "cancelled"

    def cancel(self) -> bool:
        """Whether nobody will begin."""
        with self._lock:
            if self._state != "open":
                return self._state == "cancelled"
            self._state = "cancelled"
            tell, self._tell = self._tell, None
        if tell is not None:
            tell()
        return True

    def set_result(self, value: T) -> None:
        """There it is."""
        self._value = value
        self._end()

    def set_exception(self, error: BaseException) -> None:
        """It went wrong."""
        self._error = error
        self._end()

    def done(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self._state == "done" or self._state == "cancelled"

    def when_done(self, tell: Callable[[], None]) -> None:
        """Call this when there is nothing more to wait for, on the thread that sees to that; at once, where that is so
        already. For one only: who asks later takes the place of whoever asked before."""
        with self._lock:
            if not self.done():
                self._tell = tell
                return
        tell()

    def result(self, timeout: float | None = None) -> T:
        """What it is, or the error raised; waits for it. `TimeoutError`, `CancelledError`."""
        if not self.done():
            arrived = threading.Event()
            self.when_done(arrived.set)
            if not arrived.wait(timeout):
                raise TimeoutError
        if self._state == "cancelled":
            raise CancelledError
        if self._error is not None:
            try:
                raise self._error
            finally:
                # The error's traceback must not keep the answer, which keeps the error.
                del self
        return self._value

    def _end(self) -> None:
        with self._lock:
            self._state = "done"
            tell, self._tell = self._tell, None
        if tell is not None:
            tell()
