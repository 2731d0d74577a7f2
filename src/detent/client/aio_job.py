"""The async twin of: The handle of a job."""

# Generated from client/job.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any, Self, TypeVar

from detent.client.aio_polling import aitems_of, asleep_through
from detent.client.job import Job, JobSnapshot
from detent.client.list_page import ListPage
from detent.model.records import Cancelled, EventRow, ExecutionRow, JobDetails, Moved, TransitionRow
from detent.model.stream_records import StreamLine
from detent.model.workflow_records import JobTree, SignalSent, StepRow, Undo

__all__ = ["AsyncJob"]

R = TypeVar("R")


class AsyncJob(JobSnapshot[R]):
    """The async twin of `Job`: the same verbs, awaited."""

    __slots__ = ()

    async def refresh(self) -> Self:
        """Read the job again, and return this handle. `NotFound`."""
        return self._adopt(await asyncio.to_thread(Job.like(self).refresh))

    async def wait(self, timeout: float | None = None) -> Self:
        """Wait until the job has ended, and return this handle, read again. `JobTimeout` (a TimeoutError) after
        `timeout` seconds; the job continues.
        """
        sync: Job[R] = Job.like(self)
        await asleep_through(sync._wait_steps(timeout), sync._engine.clock)
        return self._adopt(sync)

    async def cancel(self, *, undo: bool = True, actor: str | None = None, reason: str | None = None) -> Cancelled:
        """Cancel the job: a pending one at once, a running one within a second or two.

        A workflow with steps to undo is cancelled when a worker has undone them. With `undo=False` nothing is undone; a
        reason is required then. Workers cancel its children, and theirs, except detached ones; `why()` tells whether
        any are left. `AlreadyCommitted`, `InvalidTransition`, `NotFound`, `InvalidInput`.
        """
        return await asyncio.to_thread(Job.like(self).cancel, undo=undo, actor=actor, reason=reason)

    async def retry(self, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Bring a failed, quarantined or cancelled job back to pending. It is due now, or at its due time if that is
        later. `InvalidTransition`, `NotFound`.
        """
        return await asyncio.to_thread(Job.like(self).retry, actor=actor, reason=reason)

    async def discard(self, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Discard a quarantined or failed job: it becomes cancelled. `InvalidTransition`, `NotFound`."""
        return await asyncio.to_thread(Job.like(self).discard, actor=actor, reason=reason)

    async def force(self, state: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Move the job along a transition declared as `force`, marked as such on record. A reason is required.
        `InvalidTransition`, `NotFound`.
        """
        return await asyncio.to_thread(Job.like(self).force, state, actor=actor, reason=reason)

    async def settle(
        self,
        *,
        done: bool,
        result: Any = None,
        step: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Moved:
        """Record the outcome of a job that is quarantined because its effect is unknown. A reason is required.

        If `done`, the job has succeeded, with that result. If not, it is pending again with all its attempts, and its
        probe is not called for the earlier attempts.

        Of a workflow, name the `step` that is unknown, or whose undo has failed: the workflow goes on. If `done`, the
        step is on record with that result, or its undo is; if not, it is called again. `InvalidInput` names the steps
        that can be settled. `NotUnknown`, `InvalidTransition`, `NotFound`.
        """
        return await asyncio.to_thread(
            Job.like(self).settle, done=done, result=result, step=step, actor=actor, reason=reason
        )

    async def replace(
        self, payload: Mapping[str, Any] | str, /, *, actor: str | None = None, reason: str | None = None
    ) -> AsyncJob[Any]:
        """Enqueue the task of a dead or failed job with corrected arguments, and discard this job. Return the new job.
        A reason is required.

        `payload` is a mapping of all arguments by name, or its JSON text. If the application knows the task, it must
        fit the signature (`InvalidArguments`). The record of the old job names the new one, and the metadata of the new
        job name the old one (`replaces`). A key stays with the old job. A job of a run, and a job whose effect may have
        happened, are refused (`InvalidInput`). `InvalidTransition`, `NotFound`.
        """
        return AsyncJob.like(await asyncio.to_thread(Job.like(self).replace, payload, actor=actor, reason=reason))

    async def signal(
        self,
        name: str,
        payload: Any = None,
        *,
        dedupe: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> SignalSent:
        """Send a signal to this workflow: JSON that `ctx.wait_for` takes, now or later. Sending never waits for the
        workflow. Signals with the same name and `dedupe` are one signal.

        `JobEnded`, `MailboxFull`, `NotFound`, `InvalidInput`, `InvalidPayload`; `KeyConflict` if a signal with the same
        `dedupe` has another payload.
        """
        return await asyncio.to_thread(Job.like(self).signal, name, payload, dedupe=dedupe, actor=actor, reason=reason)

    async def steps(
        self,
        *,
        at: datetime | None = None,
        since: str | None = None,
        generation: int | None = None,
        limit: int = 1000,
        after: str | None = None,
    ) -> ListPage[StepRow]:
        """Return the steps of this workflow that are on record, or were at a past time, in the order in which they were
        recorded: those of the current generation, or of another one. With `since`, a step, only those that a rewind to
        it, or a fork at it, would repeat. The values of secret steps are redacted. `.next` of the list is the `after`
        of the next page. `InvalidInput`.
        """
        return await asyncio.to_thread(
            Job.like(self).steps, at=at, since=since, generation=generation, limit=limit, after=after
        )

    async def rewind(
        self, *, to: str, force: bool = False, actor: str | None = None, reason: str | None = None
    ) -> AsyncJob[R]:
        """Let this workflow continue from an earlier step, and return this handle, read again. It must be parked,
        failed, quarantined or cancelled.

        A new generation begins with copies of the steps that were recorded before `to`, the path of a step or of a
        scope. That step and all that were recorded after it are called again; `steps(since=to)` lists them. Signals
        that they took are in the mailbox again. To repeat a transaction or a step with `once=True`, use `force` and
        give a reason. `CopyRefused`, `NotFound`, `InvalidInput`.
        """
        return AsyncJob.like(
            await asyncio.to_thread(Job.like(self).rewind, to=to, force=force, actor=actor, reason=reason)
        )

    async def fork(
        self,
        *,
        at: str | None = None,
        replace: Mapping[str, Any] | None = None,
        payload: Mapping[str, Any] | None = None,
        force: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> AsyncJob[R]:
        """Start another workflow that begins with copies of the steps that this one recorded before `at`, and return
        it. This workflow is left as it is, whatever its state.

        Without `at`, everything on record is copied. `replace` maps steps before `at` to the values that the fork has
        instead of the recorded ones; `payload` are other arguments. The fork takes over the signals that its steps
        took; unread ones stay with this workflow, and the record of the fork (`history()`) names them. Its undo leaves
        alone what was copied. `force` as in `rewind`. `CopyRefused`, `NotFound`, `InvalidInput`, `InvalidPayload`,
        `InvalidArguments`.
        """
        return AsyncJob.like(
            await asyncio.to_thread(
                Job.like(self).fork, at=at, replace=replace, payload=payload, force=force, actor=actor, reason=reason
            )
        )

    async def tree(self) -> JobTree:
        """Return this job and the children that it has spawned, and theirs: at most 1,000 jobs, and 100 children of
        each. `NotFound`.
        """
        return await asyncio.to_thread(Job.like(self).tree)

    async def preview_undo(self) -> list[Undo]:
        """Return the steps of this workflow that can be undone, in the order in which an undo calls their functions,
        and whether that has happened. It is read from the record; no code is run. The values of secret steps are
        redacted. `NotFound`.
        """
        return await asyncio.to_thread(Job.like(self).preview_undo)

    async def undo(self, *, actor: str | None = None, reason: str | None = None) -> AsyncJob[Any]:
        """Undo the steps of a workflow that has ended, also of one that has succeeded. Return the job that does so.

        It is a job of its own, of the same task and queue: it calls the undo functions of the steps, the last one
        first, and records each call. There is one for each generation of a workflow: asking again returns it.
        `UndoRefused` if the workflow has not ended (cancel it), or has nothing to undo. `NotFound`.
        """
        return AsyncJob.like(await asyncio.to_thread(Job.like(self).undo, actor=actor, reason=reason))

    async def why(self) -> str:
        """Explain in one sentence why the job is in its state. `NotFound`."""
        return await asyncio.to_thread(Job.like(self).why)

    async def events(self, *, follow: bool = False) -> AsyncIterator[EventRow]:
        """Yield the events of the job in order; with `follow`, also new ones until the job has ended. `NotFound`."""
        sync = Job.like(self)
        async for item in aitems_of(sync._events_pages(follow=follow), sync._engine.clock):
            yield item

    async def stream(self, name: str | None = None, *, follow: bool = False) -> AsyncIterator[StreamLine]:
        """Yield what this workflow has written to a stream (`ctx.stream`), or to all of them, in order; with `follow`,
        also new text until the job has ended. When `attempt` grows, the text starts over. `NotFound`.
        """
        sync = Job.like(self)
        async for item in aitems_of(sync._stream_pages(name, follow=follow), sync._engine.clock):
            yield item

    async def executions(self) -> list[ExecutionRow]:
        """Return every attempt at the job, including one in flight."""
        return await asyncio.to_thread(Job.like(self).executions)

    async def history(self) -> list[TransitionRow]:
        """Return every transition of the job in order, with actor and reason."""
        return await asyncio.to_thread(Job.like(self).history)

    async def state_at(self, when: datetime) -> str | None:
        """Return the state of the job at a past time; None before it was created."""
        return await asyncio.to_thread(Job.like(self).state_at, when)

    async def progress(self) -> dict[str, Any] | None:
        """Return the last `ctx.progress` of the current attempt: `{"done": 30, "total": 90}`."""
        return await asyncio.to_thread(Job.like(self).progress)

    async def details(self) -> JobDetails | None:
        """Return the job's key while that is kept, the worker that holds or last held it, and its progress as JSON
        text.
        """
        return await asyncio.to_thread(Job.like(self).details)
