"""The verbs of pipeline runs: fan-out, pages, fan-in, consolidation, watermark.

`store/contract.py` defines the words used here. Triggers of the database move partitions and runs in the transaction
that moves a job: a claim begins the job's partition, its end ends the partition, and the end of the last partition
triggers the consolidation (or skips it) and enqueues its jobs, exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from detent.errors import DetentError, IdConflict, InvalidTransition, LeaseLost, NotFound, NotRetryable, RunInProgress
from detent.model.pipeline_records import (
    ConsolidationStep,
    NewPage,
    NewPartition,
    NewPipelineRun,
    PageStored,
    PartitionRow,
    PipelineRunRow,
    PrunedRuns,
    WatermarkRow,
)
from detent.model.records import Moved
from detent.store.verb import verb

__all__ = ["PipelineVerbs"]


class PipelineVerbs(Protocol):
    """Pipeline runs."""

    @verb("client", RunInProgress, IdConflict)
    def pipeline_start(self, item: NewPipelineRun) -> PipelineRunRow | DetentError:
        """Create a run and enqueue its planning job. `captured_at` is now, and never before the watermark; `since` is
        the current watermark, None for a full run. `RunInProgress` while a run of that watermark has not ended. The
        same id again is the same run; an id that belongs to another run: `IdConflict`."""
        ...

    @verb("worker", LeaseLost, NotFound)
    def pipeline_fan_out(
        self, run_id: int, job_id: int, attempt: int, parts: Sequence[NewPartition], tolerated: int = 0
    ) -> Moved | DetentError:
        """Insert the partitions of a run and enqueue their jobs, all or nothing; the run is workers_running then. Up to
        `tolerated` partitions may fail before the consolidation is skipped. Only by the holder of the planning job. A
        run that has a plan is left as it is. `NotFound`."""
        ...

    @verb("worker", LeaseLost, NotFound)
    def page_store(self, item: NewPage) -> PageStored | DetentError:
        """Store the records of a page, each in place of an earlier one with its key, and the next offset, if the
        partition is at `offset`. It also resets the tries of the partition. Only by the holder. `NotFound`."""
        ...

    @verb("worker", LeaseLost, NotFound)
    def portion_take(self, run_id: int, job_id: int, attempt: int, tries_max: int) -> ConsolidationStep | DetentError:
        """Take what a consolidating job does next: a portion without a living holder, else a new one of the next
        staged records in the order of their keys, else the end of the run. A portion is taken at most `tries_max`
        times, and so is the end of the run unless it made progress; a try whose attempt was given back (released,
        snoozed, throttled) does not count. Only by the holder. `NotFound`."""
        ...

    @verb("worker", LeaseLost)
    def portion_done(self, run_id: int, n: int, job_id: int, attempt: int) -> Moved | DetentError:
        """Record that a portion is consolidated. Only by the holder that took it last."""
        ...

    @verb("worker", LeaseLost, reads=True)
    def gone_take(self, run_id: int, job_id: int, attempt: int, limit: int) -> list[str] | DetentError:
        """Return up to `limit` keys that earlier runs consolidated and this run did not see, in order. The list is
        empty unless the run is full, none of its partitions failed and it saw a record. Only by the holder that ends
        the run."""
        ...

    @verb("worker", LeaseLost)
    def gone_done(self, run_id: int, job_id: int, attempt: int, keys: Sequence[str]) -> Moved | DetentError:
        """Record that these keys are retired. Only by the holder that ends the run."""
        ...

    @verb("worker", LeaseLost)
    def pipeline_complete(self, run_id: int, job_id: int, attempt: int) -> Moved | DetentError:
        """Complete the run and move its watermark to `captured_at`, in one transaction. Only by the holder that ends
        the run, when every staged record is consolidated. A completed run is left as it is."""
        ...

    @verb("admin", InvalidTransition, NotFound)
    def pipeline_force(self, run_id: int, actor: str, reason: str) -> Moved | DetentError:
        """Consolidate the staged records of a skipped run in spite of its failed partitions; recorded as forced. Other
        states: `InvalidTransition`; `NotFound`."""
        ...

    @verb("client", InvalidTransition, NotFound)
    def pipeline_cancel(self, run_id: int, actor: str, reason: str | None = None) -> Moved | DetentError:
        """Cancel a run that has not ended, on record; the watermark stays. The caller cancels its jobs afterwards: what
        they still do changes no state of the run. A cancelled run is left as it is. Other states: `InvalidTransition`;
        `NotFound`."""
        ...

    @verb("admin", InvalidTransition, NotFound, NotRetryable, RunInProgress)
    def pipeline_retry(self, run_id: int, actor: str, reason: str | None = None) -> Moved | DetentError:
        """Bring a failed, skipped or cancelled run back to work. Failed partitions are fetched again from where they
        stopped, then the consolidation goes on; completed partitions are kept. If records were consolidated already,
        only the consolidation goes on, with all its tries anew.

        Other states: `InvalidTransition`. `RunInProgress` while another run of the watermark has not ended.
        `NotRetryable` if a newer run has completed, the run has no partitions, jobs of a cancelled run have not ended,
        or its staged records or the jobs of its failed partitions are gone. `NotFound`.
        """
        ...

    @verb("viewer")
    def pipeline_get(self, run_id: int) -> PipelineRunRow | None:
        """Return a run, None if it does not exist."""
        ...

    @verb("viewer")
    def pipeline_list(
        self,
        *,
        state: str | None = None,
        name: str | None = None,
        tenant: str | None = None,
        before_id: int | None = None,
        limit: int = 100,
    ) -> list[PipelineRunRow]:
        """Return runs that fit, newest first, with ids below `before_id`."""
        ...

    @verb("viewer")
    def partition_list(
        self, run_id: int, *, state: str | None = None, after_n: int = 0, limit: int = 1000
    ) -> list[PartitionRow]:
        """Return the partitions of a run that fit, by number, after `after_n`."""
        ...

    @verb("viewer")
    def watermark_list(self, *, tenant: str | None = None, name: str | None = None) -> list[WatermarkRow]:
        """Return watermarks that fit, by tenant and name."""
        ...

    @verb("worker")
    def pipeline_prune(self, staged_before: datetime, before: datetime, limit: int) -> PrunedRuns:
        """Delete up to `limit` staged records of runs that ended before `staged_before`, then one run that ended before
        `before`. The run that moved a watermark last is kept."""
        ...
