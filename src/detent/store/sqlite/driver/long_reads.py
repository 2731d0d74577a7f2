"""Long reads, such as those of `verify`, that another thread may cancel."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["LongReads"]


class LongReads:
    """The connections on which a long read is running."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[sqlite3.Connection] = []

    @contextmanager
    def register(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Let `cancel` reach this connection inside the block."""
        with self._lock:
            self._running.append(connection)
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(connection)

    def cancel(self) -> None:
        """Interrupt the running statements. The lock keeps the connections registered, so that no other statement on
        them is interrupted."""
        with self._lock:
            for connection in self._running:
                connection.interrupt()
