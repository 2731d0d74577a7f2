"""The async twin of: `app.runs` and `app.watermarks`: batch runs, pipeline runs, and how far sources were ingested."""

# Generated from app/runs.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, overload

from detent.app.aio_batch_run import AsyncBatchRun
from detent.app.aio_pipeline_run import AsyncPipelineRun
from detent.app.aio_run_handle import AsyncRun, async_run
from detent.app.runs import RunKind, Runs, Watermarks
from detent.client.list_page import ListPage
from detent.declare.batch import BatchMethods
from detent.declare.pipeline import PipelineMethods
from detent.model.pipeline_records import WatermarkRow

__all__ = ["AsyncRuns", "AsyncWatermarks"]


class AsyncRuns:
    """The async twin of `Runs`: the same verbs, awaited."""

    def __init__(self, sync: Runs) -> None:
        self._sync = sync

    @overload
    async def get(self, run_id: int | str, *, kind: Literal["batch"]) -> AsyncBatchRun: ...

    @overload
    async def get(self, run_id: int | str, *, kind: Literal["pipeline"]) -> AsyncPipelineRun: ...

    @overload
    async def get(self, run_id: int | str, *, kind: None = None) -> AsyncRun: ...

    async def get(self, run_id: int | str, *, kind: RunKind | None = None) -> Any:
        """Return the handle of a run. With `kind`, only a run of that kind is found. `NotFound`."""
        return async_run(await asyncio.to_thread(self._sync._get, run_id, kind=kind))

    @overload
    async def list(
        self,
        *,
        kind: Literal["batch"],
        state: str | None = None,
        name: str | None = None,
        tenant: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> ListPage[AsyncBatchRun]: ...

    @overload
    async def list(
        self,
        *,
        kind: Literal["pipeline"],
        state: str | None = None,
        name: str | None = None,
        tenant: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> ListPage[AsyncPipelineRun]: ...

    @overload
    async def list(
        self,
        *,
        kind: None = None,
        state: str | None = None,
        name: str | None = None,
        tenant: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> ListPage[AsyncRun]: ...

    async def list(
        self,
        *,
        kind: RunKind | None = None,
        state: str | None = None,
        name: str | None = None,
        tenant: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Any:
        """List matching runs, the newest first. `name` is that of the batch or pipeline. `.next` of the list is the
        `after` of the next page. `InvalidInput`.
        """
        return (
            await asyncio.to_thread(
                self._sync._list, kind=kind, state=state, name=name, tenant=tenant, limit=limit, after=after
            )
        ).each(async_run)

    async def preview(
        self,
        value: BatchMethods,
        /,
        *,
        tenant: str = "",
        correlation_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> AsyncBatchRun:
        """Begin a run of a batch: workers find its targets and compute what would change. Nothing is changed yet.
        `InvalidInput` if the batch is not declared here, `InvalidArguments` if its fields do not fit.
        """
        return AsyncBatchRun.like(
            await asyncio.to_thread(
                self._sync.preview,
                value,
                tenant=tenant,
                correlation_id=correlation_id,
                metadata=metadata,
                actor=actor,
                reason=reason,
            )
        )

    async def preview_named(self, name: str, payload: str = "{}", /, **options: Any) -> AsyncBatchRun:
        """Preview a run of a batch by its name, with its fields as JSON text. Options as for `preview`. `NotFound`,
        `InvalidArguments`.
        """
        return AsyncBatchRun.like(await asyncio.to_thread(self._sync.preview_named, name, payload, **options))

    async def start(
        self,
        value: PipelineMethods,
        /,
        *,
        full: bool = False,
        force: bool = False,
        tenant: str = "",
        actor: str | None = None,
        reason: str | None = None,
    ) -> AsyncPipelineRun:
        """Begin a run of a pipeline; workers carry it out. It fetches everything if there is no watermark yet, or with
        `full`; otherwise what changed since. With `force`, which needs a reason, the run is consolidated even if
        partitions fail. `RunInProgress` while a run of the same watermark has not ended.
        """
        return AsyncPipelineRun.like(
            await asyncio.to_thread(
                self._sync.start, value, full=full, force=force, tenant=tenant, actor=actor, reason=reason
            )
        )

    async def start_named(self, name: str, payload: str = "{}", /, **options: Any) -> AsyncPipelineRun:
        """Start a run of a pipeline by its name, with its fields as JSON text. Options as for `start`. `NotFound`,
        `InvalidArguments`, also for a field that the pipeline does not have.
        """
        return AsyncPipelineRun.like(await asyncio.to_thread(self._sync.start_named, name, payload, **options))


class AsyncWatermarks:
    """The async twin of `Watermarks`: the same verbs, awaited."""

    def __init__(self, sync: Watermarks) -> None:
        self._sync = sync

    async def get(self, name: str, *, tenant: str = "") -> datetime | None:
        """Return the time up to which a source has been ingested; None before its first run has completed."""
        return await asyncio.to_thread(self._sync.get, name, tenant=tenant)

    async def list(
        self, *, tenant: str | None = None, limit: int = 100, after: str | None = None
    ) -> ListPage[WatermarkRow]:
        """List watermarks by name and tenant, each with the run that set it."""
        return await asyncio.to_thread(self._sync.list, tenant=tenant, limit=limit, after=after)
