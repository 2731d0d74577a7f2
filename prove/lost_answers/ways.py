"""Ways to a database on which the request or the answer of one commit is lost.

On PostgreSQL that is a TCP proxy. On SQLite, COMMIT raises an I/O error, before or after it took effect.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, Protocol, get_args

from detent.store.sqlite.driver.write_connection import WriteConnection
from detent.testing.lossy_proxy import Loss as ProxyLoss
from detent.testing.lossy_proxy import Proxy, Request
from detent.testing.postgres import Cluster

__all__ = ["CRASH", "HALF_OPEN", "LOSSES", "FileWay", "Loss", "ServerWay", "Way"]

Loss = Literal["request lost", "answer lost", "half-open connection", "server crash after the commit"]
HALF_OPEN: Loss = "half-open connection"
CRASH: Loss = "server crash after the commit"
LOSSES: tuple[Loss, ...] = get_args(Loss)
_OF_PROXY: dict[Loss, ProxyLoss] = {
    "request lost": "request",
    "answer lost": "answer",
    HALF_OPEN: "late",
    CRASH: "answer",
}
_LATE_SECONDS_MAX = 60.0
_READS = ("_get", "_list", "_find", "_counts", "_of", "_search")
"""How the names of verbs end that only read."""


class Way(Protocol):
    """Loses something at the k-th commit after `set_trap`."""

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What can be lost."""
        ...

    @property
    def is_late_in_transaction(self) -> bool:
        """Whether what is late holds the locks of an open transaction."""
        ...

    def way_to(self, url: str) -> AbstractContextManager[str]:
        """Open the way. Yield the URL to use instead."""
        ...

    def set_trap(self, k: int, loss: Loss) -> None:
        """Count from now on, and strike at the k-th commit; never if k is 0."""
        ...

    def take_trap(self) -> list[str]:
        """Lose nothing from now on. Return the names of the commits that were counted. If it has struck, the last name
        is that of the commit that was lost."""
        ...

    def deliver(self) -> None:
        """Let what is late arrive."""
        ...


class _Trap:
    """Counts commits. It closes when it strikes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._k = -1
        self._loss: Loss = "answer lost"
        self._names: list[str] = []

    def set(self, k: int, loss: Loss) -> None:
        with self._lock:
            self._k, self._loss, self._names = k, loss, []

    def take(self) -> list[str]:
        with self._lock:
            self._k = -1
            return self._names

    def passes(self, name: str) -> Loss | None:
        """Count a commit. Return what is to be lost of it."""
        with self._lock:
            if self._k < 0:
                return None
            self._names.append(name)
            if len(self._names) != self._k:
                return None
            self._k = -1
            return self._loss


class ServerWay:
    """The way to PostgreSQL. With `cluster`, which must be our own, its server crashes instead of losing an answer."""

    def __init__(self, cluster: Cluster | None = None) -> None:
        self.losses: tuple[Loss, ...] = (CRASH,) if cluster else ("request lost", "answer lost", HALF_OPEN)
        self.is_late_in_transaction = False
        self._crash = cluster.restart if cluster else lambda: None
        self._trap = _Trap()
        self._proxy: Proxy | None = None

    @contextmanager
    def way_to(self, url: str) -> Iterator[str]:
        with Proxy(url, self._lose, silent_seconds=_LATE_SECONDS_MAX, on_lost=self._crash) as self._proxy:
            yield self._proxy.url

    def set_trap(self, k: int, loss: Loss) -> None:
        self._trap.set(k, loss)

    def take_trap(self) -> list[str]:
        return self._trap.take()

    def deliver(self) -> None:
        assert self._proxy is not None
        self._proxy.deliver()

    def _lose(self, request: Request) -> ProxyLoss | None:
        """Count COMMITs, and statements outside a transaction that may write."""
        if not request.verb or request.verb.endswith(_READS) or (request.in_transaction and request.verb != "COMMIT"):
            return None
        loss = self._trap.passes(f"COMMIT after {request.after}" if request.verb == "COMMIT" else request.verb)
        if loss is None:
            return None
        self.is_late_in_transaction = request.in_transaction
        return _OF_PROXY[loss]


class FileWay:
    """SQLite, whose COMMIT fails with an I/O error."""

    def __init__(self) -> None:
        self.losses: tuple[Loss, ...] = ("request lost", "answer lost")
        self.is_late_in_transaction = False
        self._trap = _Trap()

    @contextmanager
    def way_to(self, url: str) -> Iterator[str]:
        plain, trap = WriteConnection.execute_own, self._trap

        def execute_own(self: WriteConnection, sql: str) -> None:
            loss = trap.passes("COMMIT") if sql == "COMMIT" else None
            if loss != "request lost":
                plain(self, sql)
            if loss is not None:
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = sqlite3.SQLITE_IOERR
                error.sqlite_errorname = "SQLITE_IOERR"
                raise error

        WriteConnection.execute_own = execute_own  # type: ignore[method-assign]
        try:
            yield url
        finally:
            WriteConnection.execute_own = plain  # type: ignore[method-assign]

    def set_trap(self, k: int, loss: Loss) -> None:
        self._trap.set(k, loss)

    def take_trap(self) -> list[str]:
        return self._trap.take()

    def deliver(self) -> None:
        """Do nothing: on SQLite no answer can arrive late."""
