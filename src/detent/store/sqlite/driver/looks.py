"""Long looks at the record, which somebody else may break off."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Looks"]


class Looks:
    """The connections that are in a long look."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: list[sqlite3.Connection] = []

    @contextmanager
    def by(self, connection: sqlite3.Connection) -> Iterator[None]:
        """While the look lasts."""
        with self._lock:
            self._under_way.append(connection)
        try:
            yield
        finally:
            with self._lock:
                self._under_way.remove(connection)

    def break_off(self) -> None:
        """Interrupt the statement that each of them is in. The lock keeps a connection here until that is done, so that
        nothing else on it is struck."""
        with self._lock:
            for connection in self._under_way:
                connection.interrupt()
