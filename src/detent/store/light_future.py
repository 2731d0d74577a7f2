"""A future that costs less than `concurrent.futures.Future`, whose condition and list of waiters cost as much as
enqueueing a job."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Generic, Literal, TypeVar

__all__ = ["LightFuture"]

T = TypeVar("T")


class LightFuture(Generic[T]):
    """A result that is set once, from any thread. It can be cancelled until `begin` is called. It has at most one
    callback."""

    __slots__ = ("_callback", "_error", "_lock", "_state", "_value")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state: Literal["open", "begun", "done", "cancelled"] = "open"
        self._callback: Callable[[], None] | None = None
        self._error: BaseException | None = None
        self._value: T

    def begin(self) -> bool:
        """Prevent cancellation from now on. Return False if it was cancelled before. May be called again."""
        with self._lock:
            if self._state == "open":
                self._state = "begun"
            return self._state != "cancelled"

    def cancel(self) -> bool:
        """Cancel, unless it has begun. Return whether it is cancelled."""
        with self._lock:
            if self._state != "open":
                return self._state == "cancelled"
            self._state = "cancelled"
            callback, self._callback = self._callback, None
        if callback is not None:
            callback()
        return True

    def set_result(self, value: T) -> None:
        """Set the result and call the callback."""
        self._value = value
        self._end()

    def set_exception(self, error: BaseException) -> None:
        """Set an error in place of a result and call the callback."""
        self._error = error
        self._end()

    def done(self) -> bool:
        """Return whether it has a result or an error, or is cancelled."""
        return self._state == "done" or self._state == "cancelled"

    def when_done(self, callback: Callable[[], None]) -> None:
        """Set the callback, in place of an earlier one. It runs on the thread that sets the result; at once if the
        future is done."""
        with self._lock:
            if not self.done():
                self._callback = callback
                return
        callback()

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result. Raises its error, `TimeoutError` or `CancelledError`."""
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
                # The traceback of the error must not keep the future, which keeps the error.
                del self
        return self._value

    def _end(self) -> None:
        with self._lock:
            self._state = "done"
            callback, self._callback = self._callback, None
        if callback is not None:
            callback()
