"""The async twin of: `app.queues` and `app.limits`."""

# Generated from app/queues.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio

from detent.app.queues import _STALE_AFTER, _STALLED_AFTER, Limits, Queues
from detent.client.list_page import ListPage
from detent.declare.limit import Limit
from detent.model.limit_records import LimitRow
from detent.model.records import Moved
from detent.model.service_records import RecoveryRow
from detent.views.queues import Queue

__all__ = ["AsyncLimits", "AsyncQueues"]


class AsyncQueues:
    """The async twin of `Queues`: the same verbs, awaited."""

    def __init__(self, sync: Queues) -> None:
        self._sync = sync

    async def list(self, *, limit: int = 100, after: str | None = None) -> ListPage[Queue]:
        """List queues by name, with their jobs by state, and who paused them and why. `.next` of the list is the
        `after` of the next page.
        """
        return await asyncio.to_thread(self._sync.list, limit=limit, after=after)

    async def get(self, name: str) -> Queue:
        """Return the queue of that name. `NotFound`."""
        return await asyncio.to_thread(self._sync.get, name)

    async def pause(self, name: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Pause a queue: no job of it starts until it is resumed. Running jobs continue."""
        return await asyncio.to_thread(self._sync.pause, name, actor=actor, reason=reason)

    async def resume(self, name: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Resume a queue: its jobs start again."""
        return await asyncio.to_thread(self._sync.resume, name, actor=actor, reason=reason)

    async def limit(self, name: str, limit: Limit, *, actor: str | None = None, reason: str | None = None) -> LimitRow:
        """Write the limit of a queue now, and return it; `Limit()` lifts it. It stays until it is set again, or until a
        worker starts whose code declares a different limit than before. `InvalidInput`.
        """
        return await asyncio.to_thread(self._sync.limit, name, limit, actor=actor, reason=reason)

    async def recovery(
        self,
        name: str,
        *,
        automatic: bool,
        stale_after: float | None = _STALE_AFTER,
        stalled_after: float | None = _STALLED_AFTER,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Moved:
        """Choose what happens to silent jobs of a queue. If `automatic`, workers stop them and run them again; if not,
        they wait for a person, which is the default.

        A job is silent if it has not started `stale_after` seconds after its claim, or has started and wrote no event
        for `stalled_after` seconds; None is never. The attempt of a job that has started ends as timed out and counts.
        The options of a task take precedence. `InvalidInput`.
        """
        return await asyncio.to_thread(
            self._sync.recovery,
            name,
            automatic=automatic,
            stale_after=stale_after,
            stalled_after=stalled_after,
            actor=actor,
            reason=reason,
        )

    async def recoveries(self) -> ListPage[RecoveryRow]:
        """List the queues whose silent jobs are stopped and run again automatically."""
        return await asyncio.to_thread(self._sync.recoveries)


class AsyncLimits:
    """The async twin of `Limits`: the same verbs, awaited."""

    def __init__(self, sync: Limits) -> None:
        self._sync = sync

    async def list(self, *, limit: int = 100, after: str | None = None) -> ListPage[LimitRow]:
        """List limits by key, with the number of running jobs, the tokens left, pause and breaker. `.next` of the list
        is the `after` of the next page.
        """
        return await asyncio.to_thread(self._sync.list, limit=limit, after=after)

    async def get(self, key: str) -> LimitRow:
        """Return the limit of that key. `NotFound`."""
        return await asyncio.to_thread(self._sync.get, key)

    async def pause(self, key: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Pause a limit: no job under it starts until it is resumed. Running jobs continue. A limit key of jobs, such
        as `shop:7`, is a limit too. `NotFound`.
        """
        return await asyncio.to_thread(self._sync.pause, key, actor=actor, reason=reason)

    async def resume(self, key: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Resume a limit: end any pause, close the breaker and fill the bucket. `NotFound`."""
        return await asyncio.to_thread(self._sync.resume, key, actor=actor, reason=reason)

    async def remove(self, key: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Remove a limit that no code declares any more. If the code still declares it, `detent migrate --app` and a
        worker that starts while no other worker runs write it again. `InUse` while jobs wait or run under it,
        `NotFound`.
        """
        return await asyncio.to_thread(self._sync.remove, key, actor=actor, reason=reason)
