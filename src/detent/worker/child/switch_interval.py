"""How long a thread of a child may compute before it lets another in, by what the child is at."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["SwitchInterval"]

_ON_THE_LOOP = 0.0001
"""Seconds. The threads that claim and write come back from the database several times a verb, and wait for the loop
each time: with half a millisecond a drain of coroutines on SQLite is a fifth slower."""
_AMONG_THREADS = 0.001
"""Where functions run on threads there are many who wait, and each that is hurried costs two switches: with a tenth of
it, jobs that write a row on PostgreSQL are a sixth fewer a second."""


class SwitchInterval:
    """Sets the interpreter's switch interval, whose five milliseconds are too long for either."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads = 0
        sys.setswitchinterval(_ON_THE_LOOP)

    @contextmanager
    def on_a_thread(self) -> Iterator[None]:
        """While plain functions are called on this thread."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, more: int) -> None:
        with self._lock:
            self._threads += more
            sys.setswitchinterval(_AMONG_THREADS if self._threads else _ON_THE_LOOP)
