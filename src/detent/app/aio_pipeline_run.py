"""The async twin of: The handle of a pipeline run."""

# Generated from app/pipeline_run.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from typing import Self

from detent.app.pipeline_run import PipelineRun, PipelineRunSnapshot
from detent.client.aio_polling import aitems_of, asleep_through
from detent.model.pipeline_records import PartitionRow
from detent.model.records import TransitionRow

__all__ = ["AsyncPipelineRun"]


class AsyncPipelineRun(PipelineRunSnapshot):
    """The async twin of `PipelineRun`: the same verbs, awaited."""

    async def refresh(self) -> Self:
        """Read the run again, and return this handle. `NotFound`."""
        return self._adopt(await asyncio.to_thread(PipelineRun.like(self).refresh))

    async def wait(self, timeout: float | None = None, until: Collection[str] | None = None) -> Self:
        """Wait until the run is in one of the states `until`; by default, until it has ended. Return this
        handle, read again. `RunTimeout` (a TimeoutError) after `timeout` seconds; the run continues.
        """
        sync: PipelineRun = PipelineRun.like(self)
        await asleep_through(sync._wait_steps(timeout, until), sync._engine.clock)
        return self._adopt(sync)

    async def retry(self, *, actor: str | None = None, reason: str | None = None) -> Self:
        """Retry a failed, skipped or cancelled run. Return this handle, read again.

        Only failed partitions are fetched again, from where they stopped; then the consolidation continues. If records
        were consolidated already, only the consolidation continues. `InvalidTransition` if the run is in progress or
        has completed, `RunInProgress` while another run of the watermark has not ended, `NotRetryable` if a newer run
        has completed or the staged records are gone. `NotFound`.
        """
        return self._adopt(await asyncio.to_thread(PipelineRun.like(self).retry, actor=actor, reason=reason))

    async def cancel(self, *, actor: str | None = None, reason: str | None = None) -> Self:
        """Cancel the run at once, and its jobs: pending ones at once, running ones within a second or two. The
        watermark stays, and so do records that were consolidated. Cancelling it again is a no-op. Return this handle,
        read again. `InvalidTransition` if the run has completed or failed, `NotFound`.
        """
        return self._adopt(await asyncio.to_thread(PipelineRun.like(self).cancel, actor=actor, reason=reason))

    async def force(self, *, actor: str | None = None, reason: str | None = None) -> Self:
        """Consolidate what a skipped run has fetched, in spite of its failed partitions. A reason is required. Return
        this handle, read again. `InvalidTransition`, `NotFound`.
        """
        return self._adopt(await asyncio.to_thread(PipelineRun.like(self).force, actor=actor, reason=reason))

    async def partitions(self, state: str | None = None) -> AsyncIterator[PartitionRow]:
        """Yield its partitions by number, all or those in a state. `InvalidInput`."""
        sync = PipelineRun.like(self)
        async for item in aitems_of(sync._partitions_pages(state), sync._engine.clock):
            yield item

    async def history(self) -> list[TransitionRow]:
        """Return every transition of the run in order, with actor and reason."""
        return await asyncio.to_thread(PipelineRun.like(self).history)
