"""The async twin of: Acting on all jobs that match a filter, as one operation that can be watched and stopped."""

# Generated from client/operation.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio
from typing import Self

from detent.client.aio_steps import asleep_through
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
        `timeout` seconds; workers then go on with it.
        """
        sync: Operation = Operation.like(self)
        await asleep_through(sync._wait_steps(timeout), sync._engine.clock)
        return self._adopt(sync)

    async def cancel(self, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Stop the operation; jobs that it has changed stay changed."""
        return await asyncio.to_thread(Operation.like(self).cancel, actor=actor, reason=reason)


class AsyncJobSelection:
    """The async twin of `JobSelection`: the same verbs, awaited."""

    def __init__(self, sync: JobSelection) -> None:
        self._sync = sync

    async def count(self) -> int:
        """Return how many jobs match now. Counts by state, task, queue and tenant are fast; others read every page."""
        return await asyncio.to_thread(self._sync.count)

    async def retry(self, *, actor: str | None = None, reason: str | None = None) -> AsyncOperation:
        """Bring all of them that rest without success back to pending."""
        return AsyncOperation.like(await asyncio.to_thread(self._sync.retry, actor=actor, reason=reason))

    async def cancel(self, *, actor: str | None = None, reason: str | None = None) -> AsyncOperation:
        """Stop all of them: pending ones at once, running ones within a second or two."""
        return AsyncOperation.like(await asyncio.to_thread(self._sync.cancel, actor=actor, reason=reason))

    async def discard(self, *, actor: str | None = None, reason: str | None = None) -> AsyncOperation:
        """Give up all of them that are quarantined or failed."""
        return AsyncOperation.like(await asyncio.to_thread(self._sync.discard, actor=actor, reason=reason))

    async def move(
        self,
        *,
        queue: str | None = None,
        priority: int | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> AsyncOperation:
        """Put all of them that are pending into another queue, or give them another priority."""
        return AsyncOperation.like(
            await asyncio.to_thread(self._sync.move, queue=queue, priority=priority, actor=actor, reason=reason)
        )
