"""Long looks at the record, which somebody else may break off."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from detent.store.postgres.driver.pool import Connection

__all__ = ["Looks"]

_CANCEL_SECONDS_MAX = 2.0


class Looks:
    """The connections that are in a long look."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: set[Connection] = set()
        self._broken_off: set[Connection] = set()

    @contextmanager
    def by(self, connection: Connection) -> Iterator[None]:
        """While the look lasts. A connection that was broken off is closed: its cancellation may still be on its way,
        and would strike whatever runs on it next."""
        with self._lock:
            self._under_way.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._under_way.discard(connection)
                was_broken_off = connection in self._broken_off
                self._broken_off.discard(connection)
            if was_broken_off:
                connection.close()

    def break_off(self) -> None:
        """Cancel what each of them waits for; where the server cannot be asked, its connection is the wait's end."""
        with self._lock:
            self._broken_off |= self._under_way
            connections = list(self._under_way)
        for connection in connections:
            with suppress(psycopg.Error):
                connection.cancel_safe(timeout=_CANCEL_SECONDS_MAX)
