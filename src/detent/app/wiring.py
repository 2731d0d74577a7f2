"""How an application's parts hang together: one store, two writers, ids, client and its async twin."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from detent.client.aio import AioClient, Application
from detent.client.client import Client, DirectClient, Prepared
from detent.declare.settings import Settings
from detent.declare.task import Task
from detent.model.clock import Clock, SystemClock
from detent.model.ids import ReservedIds
from detent.store.contract import Store
from detent.store.open import open_store
from detent.store.writer import Writer, mutex

__all__ = ["Wiring"]


class Wiring:
    """Nothing is touched when it is made; the store is made ready when it is first used."""

    def __init__(self, settings: Settings, clock: Clock | None, store: Store | None = None) -> None:
        self._settings = settings
        self._clock = clock or SystemClock()
        self._ready = store is not None
        self._requests = itertools.count(1)
        self.bare_store = store or open_store(
            settings.database_url, clock=self._clock, connections_max=settings.connections_max
        )
        self.ids = ReservedIds(lambda count: self.store.ids_reserve(count), lock=mutex())
        self.prepared = Prepared(self.ids, settings, self._clock, self.bare_store)
        plain = Writer(self.bare_store, batch_max=settings.write_batch_max)
        keyed = Writer(self.bare_store, batch_max=settings.write_batch_max)
        self._client = Client(self.bare_store, self.prepared, plain, keyed)
        self._aio = AioClient(self._client, self.prepared, self.bare_store)

    @property
    def store(self) -> Store:
        """The store, made ready. Many may come first at once: getting ready is safe for all of them."""
        if not self._ready:
            self.bare_store.ready()
            self._ready = True
        return self.bare_store

    @property
    def client(self) -> Client:
        """The client that shares transactions through the writers."""
        _ = self.store
        return self._client

    @property
    def aio(self) -> AioClient:
        """The async twin."""
        _ = self.store
        return self._aio

    def belong_to(self, application: Application, tasks: Mapping[str, Task[..., Any, Any]]) -> None:
        """Serve this application, with the tasks that it knows by name, now and later."""
        self._aio.application = application
        self.prepared.tasks = tasks

    def using(self, connection: Any) -> DirectClient:
        """The client on the caller's own connection."""
        store = self.store
        store.on(connection)

        def take_inside(count: int) -> list[int]:
            first = store.on(connection).ids_reserve(count)
            return list(range(first, first + count))

        def nonce() -> int:
            return (self.ids.nonce() + next(self._requests)) % 2**63

        # Ids from inside a transaction come again after its rollback.
        inside = (take_inside, nonce) if store.ids_by_transaction else (None, None)
        prepared = Prepared(self.ids, self._settings, self._clock, self.bare_store, *inside)
        prepared.tasks = self.prepared.tasks
        return DirectClient(lambda: store.on(connection), prepared)

    def close(self) -> None:
        """Write what was submitted, then let go of the database."""
        self._client.plain.close()
        self._client.keyed.close()
        self.bare_store.close()
