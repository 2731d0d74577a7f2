"""The engine below an application: its store, ids, clock, settings and tasks, wired together."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from detent.client.client import Client, DirectClient, Prepared
from detent.client.job import Job, Origin
from detent.declare.settings import Settings
from detent.declare.task import Task
from detent.model.clock import Clock, SystemClock
from detent.model.ids import Ids, ReservedIds
from detent.model.records import JobRow
from detent.store.contract import Store
from detent.store.enqueue_writer import EnqueueWriter
from detent.store.group_writer import new_lock
from detent.store.open import open_store

__all__ = ["Engine", "EngineRef", "Inline"]


class Inline(Protocol):
    """What is told after each enqueue, except inside a transaction of the caller's: the fixture of a test."""

    def sent(self) -> None:
        """Jobs were enqueued."""
        ...

    async def sent_on_loop(self) -> None:
        """Jobs were enqueued by code on an event loop."""
        ...


class Engine:
    """The store, ids, clock, settings and tasks of an application.

    Creating an engine connects to nothing. The store is made ready when it is first used.
    """

    def __init__(self, settings: Settings, clock: Clock | None, store: Store | None = None) -> None:
        self.settings = settings
        self.clock: Clock = clock or SystemClock()
        self.is_ready = store is not None
        self.bare_store = store or open_store(
            settings.database_url, clock=self.clock, connections_max=settings.connections_max
        )
        self.ids = ReservedIds(lambda count: self.store.ids_reserve(count), lock=new_lock())
        self.tasks: Mapping[str, Task[..., Any, Any]] = {}
        """The tasks of the application by name. They say how a result is decoded and how long it is kept."""
        self.inline: Inline | None = None
        self._requests = itertools.count(1)
        self.prepared = Prepared(self)
        plain = EnqueueWriter(self.bare_store, batch_max=settings.write_batch_max)
        keyed = EnqueueWriter(self.bare_store, batch_max=settings.write_batch_max)
        self.bare_client = Client(self.bare_store, self.prepared, plain, keyed)

    @property
    def store(self) -> Store:
        """The store, made ready. Several threads may do so at the same time."""
        if not self.is_ready:
            self.bare_store.ready()
            self.is_ready = True
        return self.bare_store

    def open_existing(self) -> None:
        """Make the store ready without creating anything. `SchemaMissing`."""
        if not self.is_ready:
            self.bare_store.ready(create=False)
            self.is_ready = True

    @property
    def client(self) -> Client:
        """The client that shares transactions through the writers."""
        _ = self.store
        return self.bare_client

    def job(self, row: JobRow) -> Job[Any]:
        """Return a handle of a job that was read. If the application knows its task, the handle decodes the result as
        the task does, and only for as long as the task keeps it."""
        task = self.tasks.get(row.task)
        decode, kept = (None, None) if task is None else (task.decode_result, task.options.result_ttl)
        return Job(row.id, Origin(self, decode, kept), False, row)

    def using(self, connection: Any) -> DirectClient:
        """Return a client on the caller's own connection, in its transaction."""
        store = self.store
        store.on(connection)

        def take_inside(count: int) -> list[int]:
            first = store.on(connection).ids_reserve(count)
            return list(range(first, first + count))

        def nonce() -> int:
            return (self.ids.nonce() + next(self._requests)) % 2**63

        # Ids that were reserved inside a transaction are handed out again after its rollback.
        inside = (take_inside, nonce) if store.ids_by_transaction else (None, None)
        return DirectClient(lambda: store.on(connection), Prepared(self, *inside))

    def close(self) -> None:
        """Write what was submitted, and close the database."""
        self.bare_client.plain.close()
        self.bare_client.keyed.close()
        self.bare_store.close()


@dataclass(frozen=True, slots=True)
class EngineRef:
    """The engine of an application, looked up at each use: tests put an application on another engine."""

    find: Callable[[], Engine]
    settings: Settings

    def store(self) -> Store:
        """Return the store, made ready."""
        return self.find().store

    def ids(self) -> Ids:
        """Return the reserved ids."""
        return self.find().ids

    def clock(self) -> Clock:
        """Return the clock."""
        return self.find().clock
