"""The async twin of: `app.schedules`: calls that are enqueued at the times of a cron expression."""

# Generated from app/schedules.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from detent.app.schedules import Schedules
from detent.client.aio_job import AsyncJob
from detent.client.list_page import ListPage
from detent.declare.task import Call
from detent.model.records import Moved
from detent.model.service_records import CatchUp, ScheduleRow

__all__ = ["AsyncSchedules"]


class AsyncSchedules:
    """The async twin of `Schedules`: the same verbs, awaited."""

    def __init__(self, sync: Schedules) -> None:
        self._sync = sync

    async def set(
        self,
        name: str,
        cron: str,
        call: Call[Any],
        *,
        zone: str = "UTC",
        catch_up: CatchUp = "latest",
        tenant: str = "",
        queue: str | None = None,
        priority: int | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> ScheduleRow:
        """Write a schedule now: create it, or change the one of that name. Options as for `app.schedule`. The next tick
        stays unless `cron` or `zone` changes, and a pause stays. `InvalidInput`.
        """
        return await asyncio.to_thread(
            self._sync.set,
            name,
            cron,
            call,
            zone=zone,
            catch_up=catch_up,
            tenant=tenant,
            queue=queue,
            priority=priority,
            actor=actor,
            reason=reason,
        )

    async def list(self, *, limit: int = 100, after: str | None = None) -> ListPage[ScheduleRow]:
        """List schedules by name. `.next` of the list is the `after` of the next page."""
        return await asyncio.to_thread(self._sync.list, limit=limit, after=after)

    async def get(self, name: str) -> ScheduleRow:
        """Return the schedule of that name. `NotFound`."""
        return await asyncio.to_thread(self._sync.get, name)

    async def pause(self, name: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Pause a schedule: it enqueues nothing until it is resumed. `NotFound`."""
        return await asyncio.to_thread(self._sync.pause, name, actor=actor, reason=reason)

    async def resume(self, name: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Resume a schedule. Ticks during the pause are not made up for. `NotFound`."""
        return await asyncio.to_thread(self._sync.resume, name, actor=actor, reason=reason)

    async def remove(self, name: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Remove a schedule. Jobs that it enqueued stay. If the code still declares it, `detent migrate --app` and a
        worker that starts while no other worker runs write it again; pause it instead. `NotFound`.
        """
        return await asyncio.to_thread(self._sync.remove, name, actor=actor, reason=reason)

    async def next(self, name: str, count: int = 5) -> ListPage[datetime]:
        """Return the next ticks of a schedule, in UTC. `NotFound`."""
        return await asyncio.to_thread(self._sync.next, name, count)

    async def run_now(self, name: str, *, actor: str | None = None, reason: str | None = None) -> AsyncJob[Any]:
        """Enqueue the job of a schedule now. The next tick does not change, and a paused schedule can be run too.

        If the task is unique while pending and an equal job waits, return that job (`created` is False). `NotFound`.
        """
        return AsyncJob.like(await asyncio.to_thread(self._sync.run_now, name, actor=actor, reason=reason))

    async def left(self) -> ListPage[str]:
        """List the names of schedules for tasks of this application that its code once declared and no longer does."""
        return await asyncio.to_thread(self._sync.left)

    async def origins(self) -> dict[str, str]:
        """Return where each schedule comes from: `code`, `hand`, or `left the code`."""
        return await asyncio.to_thread(self._sync.origins)

    async def prune(self, *, actor: str | None = None, reason: str | None = None) -> ListPage[Moved]:
        """Remove the schedules that `left` names."""
        return await asyncio.to_thread(self._sync.prune, actor=actor, reason=reason)
