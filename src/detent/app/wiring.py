"""How an application's parts hang together: one store, two writers, ids, client and its async twin."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from detent.client.aio import AioClient
from detent.client.client import Client, DirectClient, Prepared
from detent.declare.settings import Settings
from detent.model.clock import Clock, SystemClock
from detent.model.ids import ReservedIds
from detent.store.contract import Store
from detent.store.open import open_store
from detent.store.writer import Writer, mutex

__all__ = ["Wiring"]


class Wiring:
    """Each part is made when it is first needed; the store is made ready when it is first used."""

    def __init__(self, settings: Settings, clock: Clock | None, store: Store | None = None) -> None:
        self._settings = settings
        self._clock = clock or SystemClock()
        self._ready = store is not None
        self.bare_store = store or open_store(settings.database_url, clock=self._clock)

    @property
    def store(self) -> Store:
        """The store, made ready."""
        if not self._ready:
            self.bare_store.ready()
            self._ready = True
        return self.bare_store

    @cached_property
    def ids(self) -> ReservedIds:
        """Ids in blocks from the store."""
        return ReservedIds(lambda count: self.store.ids_reserve(count), lock=mutex())

    @cached_property
    def prepared(self) -> Prepared:
        """Calls to jobs, answers to handles."""
        return Prepared(self.ids, self._settings, self._clock, self.store)

    @cached_property
    def client(self) -> Client:
        """The client that shares transactions through the writers."""
        batch_max = self._settings.write_batch_max
        plain = Writer(self.store, batch_max=batch_max)
        keyed = Writer(self.store, batch_max=batch_max)
        return Client(self.store, self.prepared, plain, keyed)

    @cached_property
    def aio(self) -> AioClient:
        """The async twin."""
        return AioClient(self.client, self.prepared, self.store)

    def using(self, connection: Any) -> DirectClient:
        """The client on the caller's own connection."""
        verbs = self.store.on(connection)
        take = (lambda count: _consecutive(verbs.ids_reserve(count), count)) if self.store.ids_by_transaction else None
        prepared = Prepared(self.ids, self._settings, self._clock, verbs, take)
        return DirectClient(verbs, prepared)

    def close(self) -> None:
        """Write what was submitted, then let go of the database."""
        if "client" in self.__dict__:
            self.client.plain.close()
            self.client.keyed.close()
        self.bare_store.close()


def _consecutive(first: int, count: int) -> list[int]:
    return list(range(first, first + count))
