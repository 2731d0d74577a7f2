"""A list of jobs for the async twin: its actions are awaited."""

from __future__ import annotations

import asyncio
from typing import Any

from detent.client.job import Job
from detent.client.operation import Jobs, Operation

__all__ = ["AioJobs"]


class AioJobs(list[Job[Any]]):
    """The jobs that `await app.aio.jobs(...)` found; `next` is the `after` of the next page. The actions are those of
    `Jobs`, awaited."""

    def __init__(self, jobs: Jobs) -> None:
        super().__init__(jobs)
        self._jobs = jobs
        self.next = jobs.next

    async def count(self, *value: Any) -> int:  # type: ignore[override]
        """Return how many jobs fit now; with a value, how often it is in the list."""
        return await asyncio.to_thread(self._jobs.count, *value)

    async def retry(self, *, actor: str, reason: str | None = None) -> Operation:
        """Bring all of them that rest without success back to pending."""
        return await asyncio.to_thread(self._jobs.retry, actor=actor, reason=reason)

    async def cancel(self, *, actor: str, reason: str | None = None) -> Operation:
        """Stop all of them."""
        return await asyncio.to_thread(self._jobs.cancel, actor=actor, reason=reason)

    async def discard(self, *, actor: str, reason: str | None = None) -> Operation:
        """Give up all of them that are quarantined or failed."""
        return await asyncio.to_thread(self._jobs.discard, actor=actor, reason=reason)

    async def move(
        self, *, queue: str | None = None, priority: int | None = None, actor: str, reason: str | None = None
    ) -> Operation:
        """Put all of them that are pending into another queue, or give them another priority."""
        return await asyncio.to_thread(self._jobs.move, queue=queue, priority=priority, actor=actor, reason=reason)
