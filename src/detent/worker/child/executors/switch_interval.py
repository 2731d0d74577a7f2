"""How long a thread of a child may run before it must let another one in."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["SwitchInterval"]

_FOR_LOOP = 0.0001
"""Seconds. The threads that claim and write return from the database several times per verb, and wait for the loop
each time: with half a millisecond, draining coroutines on SQLite is a fifth slower."""
_FOR_THREADS = 0.001
"""Seconds. With functions on threads many threads wait, and each forced switch costs two: with a tenth of this, jobs
that write a row on PostgreSQL are a sixth slower."""


class SwitchInterval:
    """Sets the interpreter's switch interval. Its default of five milliseconds is too long for both cases."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads = 0
        sys.setswitchinterval(_FOR_LOOP)

    @contextmanager
    def for_threads(self) -> Iterator[None]:
        """Use the longer interval while plain functions are called on this thread."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, change: int) -> None:
        with self._lock:
            self._threads += change
            sys.setswitchinterval(_FOR_THREADS if self._threads else _FOR_LOOP)
