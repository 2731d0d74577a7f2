"""Clients for an event loop: on Detent's connections, and on an async connection of the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Self, TypeVar, Unpack

from detent.client.actor import actor_and_reason
from detent.client.aio_job import AsyncJob
from detent.client.aio_threads import answer_of
from detent.client.client import DirectClient
from detent.client.engine import Engine
from detent.client.job import JobSnapshot
from detent.client.job_verbs import cancel_reason, check_id, moved, unwrap
from detent.client.workflow_verbs import new_signal
from detent.declare.enqueue import EnqueueKeywords, EnqueueOptions, enqueue_options
from detent.declare.task import Call
from detent.errors import WrongPlace
from detent.model.records import Cancelled, Moved
from detent.model.workflow_records import SignalSent
from detent.store.contract import AsyncVerbs
from detent.telemetry.tracing import is_traced, send_traced_async

__all__ = ["AioClient", "AioDirectClient"]

R = TypeVar("R")


class AioClient:
    """The client of an application for an event loop. Enqueues share the writers of the sync client; everything else
    runs on threads, so nothing blocks the loop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._client = engine.bare_client
        self._prepared = engine.prepared

    async def open(self) -> None:
        """Open the database. Optional: the first use opens it too."""
        await asyncio.to_thread(lambda: self._engine.store)

    async def close(self) -> None:
        """Finish pending writes and close the database, for the sync application too. The next use opens it again."""
        await asyncio.to_thread(self._engine.close)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def enqueue(self, call: Call[R], /, **options: Unpack[EnqueueKeywords]) -> AsyncJob[R]:
        """Enqueue one call; when this returns, the job is accepted and durable. Options as for `app.enqueue`."""
        return (await self._send_traced([call], enqueue_options(options)))[0]

    async def enqueue_many(self, calls: Iterable[Call[R]], /, **options: Unpack[EnqueueKeywords]) -> list[AsyncJob[R]]:
        """Enqueue many calls, all or nothing. Options as for `app.enqueue`, except `key`."""
        return await self._send_traced(calls, enqueue_options(options, many=True))

    async def _send_traced(self, calls: Iterable[Call[R]], sending: EnqueueOptions) -> list[AsyncJob[R]]:
        return await (send_traced_async(self._send, calls, sending) if is_traced() else self._send(calls, sending))

    async def _send(self, calls: Iterable[Call[R]], sending: EnqueueOptions) -> list[AsyncJob[R]]:
        if not self._engine.is_ready:
            await self.open()
        if sending.debounce is not None:
            return [AsyncJob.like(job) for job in await asyncio.to_thread(self._client.send, calls, sending)]
        listed, checked = self._prepared.check(calls, sending)
        if not checked:
            return []
        if self._prepared.has_ids(len(checked)):
            jobs = self._prepared.number(checked)
        else:
            jobs = await asyncio.to_thread(self._prepared.number, checked)
        answers = await answer_of(self._client.writer_for(jobs).submit(jobs))
        if self._engine.inline is not None:
            await self._engine.inline.sent_on_loop()
        return self._prepared.handles(AsyncJob, listed, jobs, answers)

    def using(self, connection: Any) -> AioDirectClient:
        """Return a client that works inside your own transaction, on an async connection of psycopg, asyncpg or
        SQLAlchemy."""
        # A database with a single writer takes ids in the transaction itself, which only the sync client does.
        if self._engine.bare_store.ids_by_transaction and hasattr(connection, "run_sync"):
            return AioSyncedClient(connection, self)
        return AioDirectClient(self._engine.bare_store.on_async(connection), self)


class AioDirectClient:
    """A client inside the caller's own transaction, on an async connection, as `app.aio.using` returns it."""

    def __init__(self, verbs: AsyncVerbs, client: AioClient) -> None:
        self._verbs = verbs
        self._client = client
        self._engine = client._engine
        self._prepared = client._engine.prepared

    async def enqueue(self, call: Call[R], /, **options: Unpack[EnqueueKeywords]) -> AsyncJob[R]:
        """Enqueue one call in this transaction. Options as for `app.enqueue`, except `debounce`."""
        return (await self._send_traced([call], enqueue_options(options)))[0]

    async def enqueue_many(self, calls: Iterable[Call[R]], /, **options: Unpack[EnqueueKeywords]) -> list[AsyncJob[R]]:
        """Enqueue many calls in this transaction, all or nothing. Options as for `app.enqueue`, except `key` and
        `debounce`."""
        return await self._send_traced(calls, enqueue_options(options, many=True))

    async def _send_traced(self, calls: Iterable[Call[R]], sending: EnqueueOptions) -> list[AsyncJob[R]]:
        return await (send_traced_async(self._send, calls, sending) if is_traced() else self._send(calls, sending))

    async def _send(self, calls: Iterable[Call[R]], sending: EnqueueOptions) -> list[AsyncJob[R]]:
        if not self._engine.is_ready:
            await self._client.open()
        if sending.debounce is not None:
            instead = "use app.aio.enqueue, or app.using with a sync connection"
            raise WrongPlace("enqueue with debounce", "on an async connection", instead)
        listed, checked = self._prepared.check(calls, sending)
        jobs = await asyncio.to_thread(self._prepared.number, checked)
        return self._prepared.handles(AsyncJob, listed, jobs, await self._verbs.job_enqueue(jobs)) if jobs else []

    async def cancel(
        self, job_id: int | str, *, undo: bool = True, actor: str | None = None, reason: str | None = None
    ) -> Cancelled:
        """Cancel a job in this transaction. `AlreadyCommitted`, `InvalidTransition`, `NotFound`, `InvalidInput`."""
        who, why = cancel_reason(undo, actor, reason, self._prepared.settings)
        return unwrap((await self._verbs.job_cancel([check_id(job_id)], who, why, undo=undo))[0])

    async def retry(self, job_id: int | str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Bring a job back to pending in this transaction. `InvalidTransition`, `NotFound`."""
        who, why = actor_and_reason(actor, reason, self._prepared.settings)
        return moved((await self._verbs.job_retry([check_id(job_id)], who, why))[0], "retry")

    async def signal(
        self,
        job: AsyncJob[Any] | int | str,
        name: str,
        payload: Any = None,
        *,
        dedupe: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> SignalSent:
        """Send a signal to a workflow; it arrives when you commit. `JobEnded`, `KeyConflict`, `MailboxFull`,
        `NotFound`, `InvalidInput`, `InvalidPayload`."""
        job_id = job.id if isinstance(job, JobSnapshot) else check_id(job)
        signal = new_signal(job_id, name, payload, dedupe, actor, reason, self._prepared.settings)
        return unwrap((await self._verbs.signal_send([signal], apart=True))[0])


class AioSyncedClient(AioDirectClient):
    """The same on an async connection or session of SQLAlchemy, which runs the sync client with its `run_sync`."""

    def __init__(self, connection: Any, client: AioClient) -> None:
        self._connection = connection
        self._client = client
        self._engine = client._engine

    async def _run(self, work: Callable[[DirectClient], R]) -> R:
        if not self._engine.is_ready:
            await self._client.open()
        answer: R = await self._connection.run_sync(lambda connection: work(self._engine.using(connection)))
        return answer

    async def _send(self, calls: Iterable[Call[R]], sending: EnqueueOptions) -> list[AsyncJob[R]]:
        return [AsyncJob.like(job) for job in await self._run(lambda client: client._send(calls, sending))]

    async def cancel(
        self, job_id: int | str, *, undo: bool = True, actor: str | None = None, reason: str | None = None
    ) -> Cancelled:
        return await self._run(lambda client: client.cancel(job_id, undo=undo, actor=actor, reason=reason))

    async def retry(self, job_id: int | str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        return await self._run(lambda client: client.retry(job_id, actor=actor, reason=reason))

    async def signal(
        self,
        job: AsyncJob[Any] | int | str,
        name: str,
        payload: Any = None,
        *,
        dedupe: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> SignalSent:
        job_id = job.id if isinstance(job, JobSnapshot) else job
        return await self._run(
            lambda client: client.signal(job_id, name, payload, dedupe=dedupe, actor=actor, reason=reason)
        )
