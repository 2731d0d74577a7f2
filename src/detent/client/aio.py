"""The async twin: the same names, awaited.

Enqueues resolve when the writer's transaction is durable; everything else runs on a thread. On an async connection of
the caller's a verb is one statement in the caller's transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import datetime
from sys import exc_info
from typing import Any, Protocol, TypeVar, Unpack

from detent.client.aio_answers import answer_of
from detent.client.aio_jobs import AioJobs
from detent.client.aio_threads import KeptThread
from detent.client.client import Client, Prepared, actor_and_reason, check_id, job_enqueue, moved, one
from detent.client.figures import figures_since
from detent.client.follow import event_pages
from detent.client.job import Job
from detent.client.operation import Jobs
from detent.client.pipeline_run import PipelineRun, find_run
from detent.client.search import JobsFilter, RecordLines
from detent.declare.enqueue import Sending, SendingOptions, sending_of
from detent.declare.task import Call
from detent.errors import InvalidInput, WrongPlace
from detent.model.figure_records import Figures
from detent.model.records import Cancelled, EventRow, Moved
from detent.store.contract import AsyncVerbs, Store

__all__ = ["AioClient", "AioDirectClient", "Application", "OnThread", "on_one_thread", "on_some_thread"]

R = TypeVar("R")

OnThread = Callable[..., Coroutine[Any, Any, Any]]
"""Does something on a certain thread, without holding up the loop."""


class Application(Protocol):
    """What the async twin asks of its application, on a thread."""

    def jobs(self, **chosen: Unpack[JobsFilter]) -> Jobs:
        """See `Detent.jobs`."""
        ...

    def replace(self, job_id: int | str, payload: Mapping[str, Any] | str, /, *, actor: str, reason: str) -> Job[Any]:
        """See `Detent.replace`."""
        ...

    def run_schedule(self, name: str, *, actor: str, reason: str | None = None) -> Job[Any]:
        """See `Detent.run_schedule`."""
        ...

    @property
    def search_record(self) -> Callable[..., RecordLines]:
        """See `Detent.search_record`."""
        ...


class AioClient:
    """`app.aio`: enqueue, get, jobs, wait, cancel, retry, replace, discard, events and more, as coroutines."""

    application: Application

    def __init__(self, client: Client, prepared: Prepared, store: Store) -> None:
        self._client = client
        self._prepared = prepared
        self._store = store

    async def enqueue(self, call: Call[R], /, **options: Unpack[SendingOptions]) -> Job[R]:
        """Enqueue one call; durable when it returns."""
        return (await self._send([call], sending_of(options)))[0]

    async def enqueue_many(self, calls: Iterable[Call[R]], /, **options: Unpack[SendingOptions]) -> list[Job[R]]:
        """Enqueue many calls, all or nothing."""
        return await self._send(calls, sending_of(options, many=True))

    async def _send(self, calls: Iterable[Call[R]], sending: Sending) -> list[Job[R]]:
        if sending.debounce is not None:
            return await asyncio.to_thread(self._client.send, calls, sending)
        listed, checked = self._prepared.check(calls, sending)
        if not checked:
            return []
        if self._prepared.has_ids(len(checked)):
            jobs = self._prepared.number(checked)
        else:
            jobs = await asyncio.to_thread(self._prepared.number, checked)
        answers = await answer_of(self._client.writer_for(jobs).submit(job_enqueue, jobs, self._store.job_enqueue_sent))
        return self._prepared.handles(listed, jobs, answers)

    async def get(self, job_id: int | str) -> Job[Any]:
        """The job as it stands. `NotFound`."""
        return await asyncio.to_thread(self._client.get, job_id)

    async def jobs(self, **chosen: Unpack[JobsFilter]) -> AioJobs:
        """List jobs that fit, the newest first. Filters and pages as for `app.jobs`; the actions are awaited."""
        return AioJobs(await asyncio.to_thread(self.application.jobs, **chosen))

    async def replace(
        self, job_id: int | str, payload: Mapping[str, Any] | str, /, *, actor: str, reason: str
    ) -> Job[Any]:
        """Enqueue a dead or failed job's task with corrected arguments, and discard the old job."""
        return await asyncio.to_thread(self.application.replace, job_id, payload, actor=actor, reason=reason)

    async def run_schedule(self, name: str, *, actor: str, reason: str | None = None) -> Job[Any]:
        """Enqueue the job of a schedule now, on record."""
        return await asyncio.to_thread(self.application.run_schedule, name, actor=actor, reason=reason)

    async def search_record(
        self,
        *,
        actor: str | None = None,
        entity: str | None = None,
        entity_id: object = None,
        since: datetime | None = None,
        until: datetime | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> RecordLines:
        """List changes of anything that were asked for, the newest first: who, when, what and why."""
        chosen = {name: value for name, value in locals().items() if name != "self"}
        return await asyncio.to_thread(self.application.search_record, **chosen)

    async def wait(self, job: Job[R], timeout: float | None = None) -> Job[R]:
        """`job.wait` without holding up the loop; given up at once where this coroutine is cancelled. Takes a handle:
        an id is refused with `InvalidInput`."""
        if not isinstance(job, Job):
            raise InvalidInput(
                "job", f"a value of type {type(job).__name__}", "a handle; await app.aio.get(id) gives one"
            )
        pauses = job.pauses(timeout)
        while (pause := await asyncio.to_thread(next, pauses, None)) is not None:
            await asyncio.to_thread(self._prepared.clock.sleep, pause)
        return job

    async def cancel(self, job_id: int | str, *, actor: str, reason: str | None = None) -> Cancelled:
        """Stop a job."""
        return await asyncio.to_thread(self._client.cancel, job_id, actor=actor, reason=reason)

    async def retry(self, job_id: int | str, *, actor: str, reason: str | None = None) -> Moved:
        """Bring a job that rests without success back to pending."""
        return await asyncio.to_thread(self._client.retry, job_id, actor=actor, reason=reason)

    async def discard(self, job_id: int | str, *, actor: str, reason: str | None = None) -> Moved:
        """Give up a quarantined or failed job."""
        return await asyncio.to_thread(self._client.discard, job_id, actor=actor, reason=reason)

    async def settle(self, job_id: int | str, *, done: bool, actor: str, reason: str, result: Any = None) -> Moved:
        """Say what became of a job that is quarantined as unknown."""
        return await asyncio.to_thread(
            self._client.settle, job_id, done=done, actor=actor, reason=reason, result=result
        )

    async def retry_run(self, run_id: int | str, *, actor: str, reason: str | None = None) -> PipelineRun:
        """Bring a failed or skipped pipeline run back to work; as `run.retry()`, by its id."""

        def retry() -> PipelineRun:
            found = find_run(self._store, run_id, self._prepared.clock, self._prepared.settings)
            return found.retry(actor=actor, reason=reason)

        return await asyncio.to_thread(retry)

    async def events(self, job_id: int | str, *, follow: bool = False) -> AsyncIterator[EventRow]:
        """The job's lines in order; with `follow`, those to come too, until the job rests."""
        pages = event_pages(self._store, check_id(job_id), self._prepared.settings, follow=follow)
        while (page := await asyncio.to_thread(next, pages, None)) is not None:
            lines, pause = page
            for line in lines:
                yield line
            await asyncio.to_thread(self._prepared.clock.sleep, pause)

    async def figures(self, *, since: datetime | None = None, task: str | None = None) -> Figures:
        """Figures of the last 24 hours, or since another time; of one task, or of all."""
        return await asyncio.to_thread(figures_since, self._store, since, task, self._prepared.settings)

    def using(self, connection: Any) -> AioDirectClient:
        """The client's verbs inside the caller's transaction on the caller's async connection."""
        verbs = self._store.on_async(connection)
        return AioDirectClient(verbs, self._prepared)


class AioDirectClient:
    """A client on an async connection of the caller's, in its transaction."""

    def __init__(self, verbs: AsyncVerbs, prepared: Prepared) -> None:
        self._verbs = verbs
        self._prepared = prepared

    async def enqueue(self, call: Call[R], /, **options: Unpack[SendingOptions]) -> Job[R]:
        """Enqueue one call in this transaction."""
        return (await self._send([call], sending_of(options)))[0]

    async def enqueue_many(self, calls: Iterable[Call[R]], /, **options: Unpack[SendingOptions]) -> list[Job[R]]:
        """Enqueue many calls in this transaction, all or nothing."""
        return await self._send(calls, sending_of(options, many=True))

    async def _send(self, calls: Iterable[Call[R]], sending: Sending) -> list[Job[R]]:
        if sending.debounce is not None:
            instead = "enqueue with app.aio.enqueue, or on a connection that is not async with app.using"
            raise WrongPlace("enqueue with debounce", "on an async connection", instead)
        listed, checked = self._prepared.check(calls, sending)
        jobs = await asyncio.to_thread(self._prepared.number, checked)
        return self._prepared.handles(listed, jobs, await self._verbs.job_enqueue(jobs)) if jobs else []

    async def cancel(self, job_id: int | str, *, actor: str, reason: str | None = None) -> Cancelled:
        """Stop a job in this transaction."""
        who, why = actor_and_reason(actor, reason, self._prepared.settings)
        return one((await self._verbs.job_cancel([check_id(job_id)], who, why))[0])

    async def retry(self, job_id: int | str, *, actor: str, reason: str | None = None) -> Moved:
        """Bring a job back to pending in this transaction."""
        who, why = actor_and_reason(actor, reason, self._prepared.settings)
        return moved((await self._verbs.job_retry([check_id(job_id)], who, why))[0], "retry")


async def on_some_thread(work: Callable[..., R], *args: Any) -> R:
    """Do it without holding up the loop."""
    return await asyncio.to_thread(work, *args)


@asynccontextmanager
async def on_one_thread(block: AbstractContextManager[R]) -> AsyncIterator[tuple[R, OnThread]]:
    """A block that is entered, used and left on one thread of its own: what it gives, and the way to that thread.

    However it is left, by a cancel too, the block comes to its end: whatever was begun on the thread comes first.
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
