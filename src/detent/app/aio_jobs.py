"""The async twin of: `app.jobs`, `app.dead` and `app.operations`: finding jobs, and acting on one or on many."""

# Generated from app/jobs.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from detent.app.jobs import _STALE_AFTER, _STALLED_AFTER, DeadJobs, Jobs, Operations
from detent.client.aio_job import AsyncJob
from detent.client.aio_operation import AsyncJobSelection, AsyncOperation
from detent.client.list_page import ListPage
from detent.model.records import Count
from detent.model.service_records import DeadGroup, SilentRow

__all__ = ["AsyncDeadJobs", "AsyncJobs", "AsyncOperations"]


class AsyncJobs:
    """The async twin of `Jobs`: the same verbs, awaited."""

    def __init__(self, sync: Jobs) -> None:
        self._sync = sync

    async def get(self, job_id: int | str) -> AsyncJob[Any]:
        """Return the handle of a job. `NotFound`."""
        return AsyncJob.like(await asyncio.to_thread(self._sync.get, job_id))

    async def list(
        self,
        *,
        state: str | None = None,
        task: str | None = None,
        queue: str | None = None,
        tenant: str | None = None,
        key: str | None = None,
        correlation_id: str | None = None,
        run: int | str | None = None,
        worker: str | None = None,
        error: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> ListPage[AsyncJob[Any]]:
        """List matching jobs, the newest first by creation. `.next` of the list is the `after` of the next page.

        `key` (within a tenant), `run`, `correlation_id`, `since` and `until` (time of creation) use an index. The other
        filters are compared job by job; `error` matches a part of the text, and `metadata` members such as
        `{"order": 17}`. A page looks at 25,000 jobs at most, so it may be short or empty although it has a `next`.
        `InvalidInput`.
        """
        return (
            await asyncio.to_thread(
                self._sync.list,
                state=state,
                task=task,
                queue=queue,
                tenant=tenant,
                key=key,
                correlation_id=correlation_id,
                run=run,
                worker=worker,
                error=error,
                metadata=metadata,
                since=since,
                until=until,
                limit=limit,
                after=after,
            )
        ).each(AsyncJob.like)

    def where(
        self,
        *,
        state: str | None = None,
        task: str | None = None,
        queue: str | None = None,
        tenant: str | None = None,
        key: str | None = None,
        correlation_id: str | None = None,
        run: int | str | None = None,
        worker: str | None = None,
        error: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> AsyncJobSelection:
        """Describe a selection of jobs by the filters of `list`, without reading anything. You can count it, or act on
        all of it: `app.jobs.where(state="quarantined", queue="mail").retry()`. `InvalidInput`.
        """
        return AsyncJobSelection(
            self._sync.where(
                state=state,
                task=task,
                queue=queue,
                tenant=tenant,
                key=key,
                correlation_id=correlation_id,
                run=run,
                worker=worker,
                error=error,
                metadata=metadata,
                since=since,
                until=until,
            )
        )

    async def counts(
        self, *, at: datetime | None = None, tenant: str | None = None, by_tenant: bool = False
    ) -> ListPage[Count]:
        """Count jobs by queue and state: of all tenants together, or of one. With `by_tenant`, count them by tenant
        too, which takes longer if there are many tenants.

        With `at`, count them at a past time within retention. That reads the whole record. `InvalidInput`.
        """
        return await asyncio.to_thread(self._sync.counts, at=at, tenant=tenant, by_tenant=by_tenant)

    async def silent(
        self,
        *,
        queue: str | None = None,
        stale_after: float = _STALE_AFTER,
        stalled_after: float = _STALLED_AFTER,
        limit: int = 100,
    ) -> ListPage[SilentRow]:
        """List running jobs that are silent, the longest silent first. A job is `stale` if it has not started
        `stale_after` seconds after its claim, and `stalled` if it has started and wrote no event for `stalled_after`
        seconds. The options of its task take precedence. To give up such a job, cancel it.
        """
        return await asyncio.to_thread(
            self._sync.silent, queue=queue, stale_after=stale_after, stalled_after=stalled_after, limit=limit
        )


class AsyncDeadJobs:
    """The async twin of `DeadJobs`: the same verbs, awaited."""

    def __init__(self, sync: DeadJobs) -> None:
        self._sync = sync

    async def list(
        self,
        *,
        task: str | None = None,
        queue: str | None = None,
        tenant: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> ListPage[AsyncJob[Any]]:
        """List dead jobs, the newest first by creation."""
        return (
            await asyncio.to_thread(self._sync.list, task=task, queue=queue, tenant=tenant, limit=limit, after=after)
        ).each(AsyncJob.like)

    async def report(
        self, *, task: str | None = None, queue: str | None = None, tenant: str | None = None, limit: int = 100
    ) -> ListPage[DeadGroup]:
        """Summarise why jobs died. One group for each task, queue, reason and kind of error, with the number of jobs,
        their ages, their attempts and one of them as an example. The largest groups come first.
        """
        return await asyncio.to_thread(self._sync.report, task=task, queue=queue, tenant=tenant, limit=limit)


class AsyncOperations:
    """The async twin of `Operations`: the same verbs, awaited."""

    def __init__(self, sync: Operations) -> None:
        self._sync = sync

    async def get(self, operation_id: int | str) -> AsyncOperation:
        """Return the handle of an operation. `NotFound`."""
        return AsyncOperation.like(await asyncio.to_thread(self._sync.get, operation_id))

    async def list(
        self, *, state: str | None = None, limit: int = 100, after: str | None = None
    ) -> ListPage[AsyncOperation]:
        """List operations, the newest first. `.next` of the list is the `after` of the next page. `InvalidInput`."""
        return (await asyncio.to_thread(self._sync.list, state=state, limit=limit, after=after)).each(
            AsyncOperation.like
        )
