"""The async twin: the same names, awaited.

Enqueues resolve when the writer's transaction is durable; everything else runs on a thread. On an async connection of
the caller's a verb is one statement in the caller's transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any, TypeVar

from detent.client.client import Client, Prepared, actor_and_reason, check_id, job_enqueue, one
from detent.client.job import Job
from detent.declare.enqueue import Sending
from detent.declare.task import Call
from detent.errors import InvalidInput
from detent.model.records import Cancelled, EventRow, Moved
from detent.store.contract import AsyncVerbs, Store
from detent.views.jobs import follow_events

__all__ = ["AioClient", "AioDirectClient"]

R = TypeVar("R")


class AioClient:
    """`app.aio`: enqueue, get, wait, cancel, retry, discard, events, as coroutines."""

    def __init__(self, client: Client, prepared: Prepared, store: Store) -> None:
        self._client = client
        self._prepared = prepared
        self._store = store

    async def enqueue(self, call: Call[R], **sending: Any) -> Job[R]:
        """Enqueue one call; durable when it returns."""
        return (await self._send([call], Sending(**sending)))[0]

    async def enqueue_many(self, calls: Iterable[Call[R]], **sending: Any) -> list[Job[R]]:
        """Enqueue many calls, all or nothing."""
        if sending.get("key") is not None:
            raise InvalidInput("key", repr(sending["key"]), "no key for many jobs; enqueue them one by one")
        return await self._send(calls, Sending(**sending))

    async def _send(self, calls: Iterable[Call[R]], sending: Sending) -> list[Job[R]]:
        many = list(calls)
        if self._prepared.has_ids(len(many)):
            listed, jobs = self._prepared.jobs(many, sending)
        else:
            listed, jobs = await asyncio.to_thread(self._prepared.jobs, many, sending)
        if not jobs:
            return []
        answers = await asyncio.wrap_future(self._client.writer_for(jobs).submit(job_enqueue, jobs))
        return [self._prepared.handle(call, answer) for call, answer in zip(listed, answers, strict=True)]

    async def get(self, job_id: int) -> Job[Any]:
        """The job as it stands. `NotFound`."""
        return await asyncio.to_thread(self._client.get, job_id)

    async def wait(self, job: Job[R], timeout: float | None = None) -> Job[R]:
        """`job.wait` without holding up the loop."""
        return await asyncio.to_thread(job.wait, timeout)

    async def cancel(self, job_id: int, *, actor: str, reason: str | None = None) -> Cancelled:
        """Stop a job."""
        return await asyncio.to_thread(self._client.cancel, job_id, actor=actor, reason=reason)

    async def retry(self, job_id: int, *, actor: str, reason: str | None = None) -> Moved:
        """Bring a job that rests without success back to pending."""
        return await asyncio.to_thread(self._client.retry, job_id, actor=actor, reason=reason)

    async def discard(self, job_id: int, *, actor: str, reason: str | None = None) -> Moved:
        """Give up a quarantined or failed job."""
        return await asyncio.to_thread(self._client.discard, job_id, actor=actor, reason=reason)

    async def events(self, job_id: int, *, follow: bool = False) -> AsyncIterator[EventRow]:
        """The job's lines in order; with `follow`, those to come too, until the job rests."""
        lines = follow_events(self._store, check_id(job_id), self._prepared, follow=follow)
        while (line := await asyncio.to_thread(next, lines, None)) is not None:
            yield line

    def using(self, connection: Any) -> AioDirectClient:
        """The client's verbs inside the caller's transaction on the caller's async connection."""
        verbs = self._store.on_async(connection)
        return AioDirectClient(verbs, self._prepared)


class AioDirectClient:
    """A client on an async connection of the caller's, in its transaction."""

    def __init__(self, verbs: AsyncVerbs, prepared: Prepared) -> None:
        self._verbs = verbs
        self._prepared = prepared

    async def enqueue(self, call: Call[R], **sending: Any) -> Job[R]:
        """Enqueue one call in this transaction."""
        return (await self._send([call], Sending(**sending)))[0]

    async def enqueue_many(self, calls: Iterable[Call[R]], **sending: Any) -> list[Job[R]]:
        """Enqueue many calls in this transaction, all or nothing."""
        return await self._send(calls, Sending(**sending))

    async def _send(self, calls: Iterable[Call[R]], sending: Sending) -> list[Job[R]]:
        listed, jobs = await asyncio.to_thread(self._prepared.jobs, calls, sending)
        answers = await self._verbs.job_enqueue(jobs) if jobs else []
        return [self._prepared.handle(call, answer) for call, answer in zip(listed, answers, strict=True)]

    async def cancel(self, job_id: int, *, actor: str, reason: str | None = None) -> Cancelled:
        """Stop a job in this transaction."""
        who, why = actor_and_reason(actor, reason, self._prepared.settings)
        return one((await self._verbs.job_cancel([check_id(job_id)], who, why))[0])

    async def retry(self, job_id: int, *, actor: str, reason: str | None = None) -> Moved:
        """Bring a job back to pending in this transaction."""
        who, why = actor_and_reason(actor, reason, self._prepared.settings)
        return one((await self._verbs.job_retry([check_id(job_id)], who, why))[0])
