"""The async twin of either kind of run."""

from __future__ import annotations

from detent.app.aio_batch_run import AsyncBatchRun
from detent.app.aio_pipeline_run import AsyncPipelineRun
from detent.app.batch_run import BatchRunSnapshot
from detent.app.pipeline_run import PipelineRunSnapshot

__all__ = ["AsyncRun", "async_run"]

AsyncRun = AsyncBatchRun | AsyncPipelineRun


def async_run(run: BatchRunSnapshot | PipelineRunSnapshot) -> AsyncRun:
    """Return the async handle of a run."""
    return AsyncBatchRun.like(run) if isinstance(run, BatchRunSnapshot) else AsyncPipelineRun.like(run)
