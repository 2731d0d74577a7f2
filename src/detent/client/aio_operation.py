"""The async twin of: Acting on all jobs that match a filter, as one operation that can be followed and cancelled."""

# Generated from client/operation.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio
from typing import Self

from detent.client.aio_polling import asleep_through
from detent.client.operation import JobSelection, Operation, OperationSnapshot
from detent.model.records import Moved

__all__ = ["AsyncJobSelection", "AsyncOperation"]


class AsyncOperation(OperationSnapshot):
    """The async twin of `Operation`: the same verbs, awaited."""

    async def refresh(self) -> Self:
        """Read the operation again, and return this handle. `NotFound`."""
        return self._adopt(await asyncio.to_thread(Operation.like(self).refresh))

    async def step(self) -> Self:
        """Carry out the next portion, and return this handle, read again."""
        return self._adopt(await asyncio.to_thread(Operation.like(self).step))

    async def wait(self, timeout: float | None = None) -> Self:
        """Carry the operation out until it has ended, and return this handle. `JobTimeout` (a TimeoutError) after
        `timeout` seconds; workers continue it.
        """
        sync: Operation = Operation.like(self)
        await asleep_through(sync._wait_steps(timeout), sync._engine.clock)
        return self._adopt(sync)

    async def cancel(self, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Cancel the operation; jobs that it has changed stay changed."""
        return await asyncio.to_thread(Operation.like(self).cancel, actor=actor, reason=reason)


class AsyncJobSelection:
    """The async twin of `JobSelection`: the same verbs, awaited."""

    def __init__(self, sync: JobSelection) -> None:
        self._sync = sync

    async def count(self) -> int:
        """Return how many jobs match now. It is fast for state, task, queue and tenant; other filters read jobs."""
        return await asyncio.to_thread(self._sync.count)

    async def retry(self, *, actor: str | None = None, reason: str | None = None) -> AsyncOperation:
        """Bring failed, quarantined and cancelled jobs back to pending."""
        return AsyncOperation.like(await asyncio.to_thread(self._sync.retry, actor=actor, reason=reason))

    async def cancel(self, *, undo: bool = True, actor: str | None = None, reason: str | None = None) -> AsyncOperation:
        """Cancel jobs: pending ones at once, running ones within a second or two. Workflows undo their steps first, and
        take their children with them; with `undo=False` nothing is undone, and a reason is required. `InvalidInput`.
        """
        return AsyncOperation.like(await asyncio.to_thread(self._sync.cancel, undo=undo, actor=actor, reason=reason))

    async def discard(self, *, actor: str | None = None, reason: str | None = None) -> AsyncOperation:
        """Discard quarantined and failed jobs."""
        return AsyncOperation.like(await asyncio.to_thread(self._sync.discard, actor=actor, reason=reason))

    async def move(
        self,
        *,
        queue: str | None = None,
        priority: int | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> AsyncOperation:
        """Move pending jobs to another queue, or change their priority. `InvalidInput`."""
        return AsyncOperation.like(
            await asyncio.to_thread(self._sync.move, queue=queue, priority=priority, actor=actor, reason=reason)
        )
