"""The async twin of: `app.workers`, and the handle of a worker."""

# Generated from app/workers.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio
from typing import Self

from detent.app.workers import _ALIVE_WITHIN, Worker, Workers, WorkerSnapshot
from detent.client.list_page import ListPage

__all__ = ["AsyncWorker", "AsyncWorkers"]


class AsyncWorker(WorkerSnapshot):
    """The async twin of `Worker`: the same verbs, awaited."""

    async def refresh(self) -> Self:
        """Read the worker again, and return this handle. `NotFound` if it has ended."""
        return self._adopt(await asyncio.to_thread(Worker.like(self).refresh))

    async def drain(self, *, actor: str | None = None, reason: str | None = None) -> Self:
        """Ask the worker to end, from any machine: it stops claiming with its next heartbeat, in a second or two,
        finishes its jobs within its `--grace`, hands back the rest, and exits, as after SIGTERM. Asking again is a
        no-op. Return this handle, read again. `NotFound` if it has ended.
        """
        return self._adopt(await asyncio.to_thread(Worker.like(self).drain, actor=actor, reason=reason))


class AsyncWorkers:
    """The async twin of `Workers`: the same verbs, awaited."""

    def __init__(self, sync: Workers) -> None:
        self._sync = sync

    async def list(
        self, *, within: float = _ALIVE_WITHIN, limit: int = 100, after: str | None = None
    ) -> ListPage[AsyncWorker]:
        """List the workers with a heartbeat in the last `within` seconds by id, with the tasks they know and the jobs
        they hold. `.next` of the list is the `after` of the next page. `InvalidInput`.
        """
        return (await asyncio.to_thread(self._sync.list, within=within, limit=limit, after=after)).each(
            AsyncWorker.like
        )

    async def get(self, worker_id: int | str) -> AsyncWorker:
        """Return the handle of a worker that has not ended. `NotFound`."""
        return AsyncWorker.like(await asyncio.to_thread(self._sync.get, worker_id))
