"""Sending from an event loop.

Enqueues resolve when the writer's transaction is durable; everything else runs on a thread. On an async connection of
the caller's a verb is one statement in the caller's transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import AbstractContextManager, asynccontextmanager
from sys import exc_info
from typing import Any, TypeVar, Unpack

from detent.client.acting import actor_and_reason
from detent.client.aio_answers import answer_of
from detent.client.aio_job import AsyncJob
from detent.client.aio_threads import KeptThread
from detent.client.engine import Engine
from detent.client.moves import check_id, moved, one
from detent.declare.enqueue import Sending, SendingOptions, sending_of
from detent.declare.task import Call
from detent.errors import WrongPlace
from detent.model.records import Cancelled, Moved
from detent.store.contract import AsyncVerbs

__all__ = ["AioClient", "AioDirectClient", "OnThread", "on_one_thread", "on_some_thread"]

R = TypeVar("R")

OnThread = Callable[..., Coroutine[Any, Any, Any]]
"""Runs a function on a certain thread, without blocking the event loop."""


class AioClient:
    """Sending from an event loop. Enqueues share the writers of the sync client; nothing here blocks the loop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._client = engine.bare_client
        self._prepared = engine.prepared

    async def open(self) -> None:
        """Open the database. Optional: the first use opens it too."""
        await asyncio.to_thread(lambda: self._engine.store)

    async def enqueue(self, call: Call[R], /, **options: Unpack[SendingOptions]) -> AsyncJob[R]:
        """Enqueue one call; when this returns, the job is accepted and durable. Options as for `app.enqueue`."""
        return (await self._send([call], sending_of(options)))[0]

    async def enqueue_many(self, calls: Iterable[Call[R]], /, **options: Unpack[SendingOptions]) -> list[AsyncJob[R]]:
        """Enqueue many calls, all or nothing. Options as for `app.enqueue`, except `key`."""
        return await self._send(calls, sending_of(options, many=True))

    async def _send(self, calls: Iterable[Call[R]], sending: Sending) -> list[AsyncJob[R]]:
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
        return self._prepared.handles(AsyncJob, listed, jobs, answers)

    def using(self, connection: Any) -> AioDirectClient:
        """Return a client that works inside your own transaction, on an async connection of psycopg, asyncpg or
        SQLAlchemy."""
        return AioDirectClient(self._engine.bare_store.on_async(connection), self)


class AioDirectClient:
    """A client inside the caller's own transaction, on an async connection, as `app.aio.using` returns it."""

    def __init__(self, verbs: AsyncVerbs, client: AioClient) -> None:
        self._verbs = verbs
        self._client = client
        self._engine = client._engine
        self._prepared = client._engine.prepared

    async def enqueue(self, call: Call[R], /, **options: Unpack[SendingOptions]) -> AsyncJob[R]:
        """Enqueue one call in this transaction. Options as for `app.enqueue`, except `debounce`."""
        return (await self._send([call], sending_of(options)))[0]

    async def enqueue_many(self, calls: Iterable[Call[R]], /, **options: Unpack[SendingOptions]) -> list[AsyncJob[R]]:
        """Enqueue many calls in this transaction, all or nothing. Options as for `app.enqueue`, except `key` and
        `debounce`."""
        return await self._send(calls, sending_of(options, many=True))

    async def _send(self, calls: Iterable[Call[R]], sending: Sending) -> list[AsyncJob[R]]:
        if not self._engine.is_ready:
            await self._client.open()
        if sending.debounce is not None:
            instead = "enqueue with app.aio.enqueue, or on a connection that is not async with app.using"
            raise WrongPlace("enqueue with debounce", "on an async connection", instead)
        listed, checked = self._prepared.check(calls, sending)
        jobs = await asyncio.to_thread(self._prepared.number, checked)
        return self._prepared.handles(AsyncJob, listed, jobs, await self._verbs.job_enqueue(jobs)) if jobs else []

    async def cancel(self, job_id: int | str, *, actor: str | None = None, reason: str | None = None) -> Cancelled:
        """Cancel a job in this transaction. `AlreadyCommitted`, `InvalidTransition`, `NotFound`."""
        who, why = actor_and_reason(actor, reason, self._prepared.settings)
        return one((await self._verbs.job_cancel([check_id(job_id)], who, why))[0])

    async def retry(self, job_id: int | str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Bring a job back to pending in this transaction. `InvalidTransition`, `NotFound`."""
        who, why = actor_and_reason(actor, reason, self._prepared.settings)
        return moved((await self._verbs.job_retry([check_id(job_id)], who, why))[0], "retry")


async def on_some_thread(work: Callable[..., R], *args: Any) -> R:
    """Run a function on a thread, without blocking the event loop."""
    return await asyncio.to_thread(work, *args)


@asynccontextmanager
async def on_one_thread(block: AbstractContextManager[R]) -> AsyncIterator[tuple[R, OnThread]]:
    """Enter, use and leave a context manager on one thread of its own. Yield its value, and what runs functions there.

    The context manager is always left, also after a cancel, once what was started on the thread has ended.
    """
    thread, entered = KeptThread.take(), False

    def enter() -> R:
        nonlocal entered
        value = block.__enter__()
        entered = True
        return value

    def leave(*error: Any) -> None:
        if entered:
            block.__exit__(*error)

    try:
        yield await thread.do(enter), thread.do
    except BaseException:
        await asyncio.shield(answer_of(thread.end_with(leave, *exc_info())))
        raise
    else:
        await asyncio.shield(answer_of(thread.end_with(leave, None, None, None)))
