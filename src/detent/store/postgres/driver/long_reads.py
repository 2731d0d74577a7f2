"""Long reads, such as those of `verify`, that another thread may cancel."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from detent.store.postgres.driver.connection import Connection

__all__ = ["LongReads"]

_CANCEL_SECONDS_MAX = 2.0


class LongReads:
    """The connections on which a long read is running."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[Connection] = set()
        self._cancelled: set[Connection] = set()

    @contextmanager
    def register(self, connection: Connection) -> Iterator[None]:
        """Let `cancel` reach this connection inside the block. A cancelled connection is closed: the cancellation may
        still be on its way, and would hit the next statement."""
        with self._lock:
            self._running.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(connection)
                was_cancelled = connection in self._cancelled
                self._cancelled.discard(connection)
            if was_cancelled:
                connection.close()

    def cancel(self) -> None:
        """Ask the server to cancel the running statements. If the server does not answer, its connection is closed."""
        with self._lock:
            self._cancelled |= self._running
            connections = list(self._running)
        for connection in connections:
            with suppress(psycopg.Error):
                connection.cancel_safe(timeout=_CANCEL_SECONDS_MAX)
