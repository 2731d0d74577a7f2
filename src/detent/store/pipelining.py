"""The contract's verbs of pipeline runs: fan out, pages, fan in, consolidation, watermark.

The words are those of `contract`, which has these verbs too. What a job's end means for its partition and for the run
follows in the transaction that ends the job, by the database itself: a claim begins its partition, an end ends it, and
the last partition's end triggers the consolidation (or skips it) and enqueues its jobs, exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from detent.errors import DetentError, IdConflict, InvalidTransition, LeaseLost, NotFound, NotRetryable, RunInProgress
from detent.model.pipeline_records import (
    NewPage,
    NewPartition,
    NewPipelineRun,
    PageStored,
    PartitionRow,
    PipelineRunRow,
    Portion,
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
        """Create a run with its planning job. The time is captured now, never before the watermark; `since` is the
        watermark as it stands, none for a full run. `RunInProgress` while a run of that watermark has not ended. The
        same id again is the same run; another run's: `IdConflict`."""
        ...

    @verb("worker", LeaseLost, NotFound)
    def pipeline_fan_out(
        self, run_id: int, job_id: int, attempt: int, parts: Sequence[NewPartition], tolerated: int = 0
    ) -> Moved | DetentError:
        """The plan is made: partitions and their jobs, all or nothing, and the run is on its way. So many of them may
        fail without the run being skipped. Only by the holder of the planning job. A run that has a plan already is
        left as it is. `NotFound`."""
        ...

    @verb("worker", LeaseLost, NotFound)
    def page_store(self, item: NewPage) -> PageStored | DetentError:
        """Store a page: its records, each in place of an earlier one of its key, together with the next offset, where
        the partition stands at `offset`; and the tries of the partition begin anew. Only by the holder. `NotFound`."""
        ...

    @verb("worker", LeaseLost, NotFound)
    def portion_take(self, run_id: int, job_id: int, attempt: int, tries_max: int) -> Portion | DetentError:
        """What a consolidating job does next: a portion that nobody alive holds, else a new one of the next staged
        records in the order of their keys, else the end of the run. A portion is taken at most `tries_max` times, and
        so is the end of the run unless it got on; a try whose attempt was given back (released, snoozed, throttled)
        does not count. Only by the holder. `NotFound`."""
        ...

    @verb("worker", LeaseLost)
    def portion_done(self, run_id: int, n: int, job_id: int, attempt: int) -> Moved | DetentError:
        """A portion is consolidated. Only by the holder who took it last."""
        ...

    @verb("worker", LeaseLost, reads=True)
    def gone_take(self, run_id: int, job_id: int, attempt: int, limit: int) -> list[str] | DetentError:
        """Up to `limit` keys that earlier runs consolidated and this one did not see, in their order. None unless the
        run is full, no partition of it failed and it saw any record. Only by the holder who ends the run."""
        ...

    @verb("worker", LeaseLost)
    def gone_done(self, run_id: int, job_id: int, attempt: int, keys: Sequence[str]) -> Moved | DetentError:
        """These keys are retired. Only by the holder who ends the run."""
        ...

    @verb("worker", LeaseLost)
    def pipeline_complete(self, run_id: int, job_id: int, attempt: int) -> Moved | DetentError:
        """Complete the run and move its watermark to the time it captured, in one transaction. Only by the holder who
        ends the run, when every staged record is consolidated. A completed run is left as it is."""
        ...

    @verb("admin", InvalidTransition, NotFound)
    def pipeline_force(self, run_id: int, actor: str, reason: str) -> Moved | DetentError:
        """Consolidate what is there of a skipped run, in spite of its failed partitions; marked as forced on record.
        Other states: `InvalidTransition`; `NotFound`."""
        ...

    @verb("admin", InvalidTransition, NotFound, NotRetryable, RunInProgress)
    def pipeline_retry(self, run_id: int, actor: str, reason: str | None = None) -> Moved | DetentError:
        """Bring a failed or skipped run back to work. Failed partitions are fetched again from where they stopped, then
        the consolidation goes on; completed partitions are kept. If records were consolidated already, only the
        consolidation goes on, with all its tries anew.

        Other states: `InvalidTransition`. `RunInProgress` while another run of the watermark has not ended.
        `NotRetryable` if a newer run has completed, the run has no partitions, or its staged records or the jobs of its
        failed partitions are gone. `NotFound`.
        """
        ...

    @verb("viewer")
    def pipeline_get(self, run_id: int) -> PipelineRunRow | None: ...

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
        """Runs that fit, the newest first."""
        ...

    @verb("viewer")
    def partition_list(
        self, run_id: int, *, state: str | None = None, after_n: int = 0, limit: int = 1000
    ) -> list[PartitionRow]:
        """The partitions of a run, by number above `after_n`."""
        ...

    @verb("viewer")
    def watermark_list(self, *, tenant: str | None = None, name: str | None = None) -> list[WatermarkRow]:
        """Watermarks that fit, by tenant and name."""
        ...

    @verb("worker")
    def pipeline_prune(self, staged_before: datetime, before: datetime, limit: int) -> PrunedRuns:
        """Delete up to `limit` staged records and portions of runs that ended before `staged_before`; and whole runs
        that ended before `before`, one at a time. What a watermark stands on stays."""
        ...
