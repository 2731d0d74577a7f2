"""The handle of a pipeline run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import Self

from detent.client.actor import actor_and_reason
from detent.client.handle import RunHandle
from detent.client.job_verbs import reason_needed, unwrap
from detent.client.operation import JobSelection
from detent.client.polling import items_of, pauses_until, sleep_through
from detent.errors import InvalidInput, NotFound, RunTimeout
from detent.lifecycle.library import PARTITION, PIPELINE_RUN
from detent.model.pipeline_records import PIPELINE_ENDED, PartitionRow, PipelineRunRow
from detent.model.records import TransitionRow
from detent.store.jobs.filters import JobSearch

__all__ = ["PipelineRun", "PipelineRunSnapshot"]

_PAGE = 1000
_IN_FLIGHT = ("pending", "running")


class PipelineRunSnapshot(RunHandle[PipelineRunRow]):
    """A pipeline run as it was when it was last read."""

    def __repr__(self) -> str:
        return f"<PipelineRun {self.id} {self.row.name} {self.state}>"

    @property
    def pipeline(self) -> str:
        """The name of its pipeline."""
        return self.row.name

    @property
    def is_full(self) -> bool:
        """Whether it fetches everything, and not only what changed since the watermark."""
        return self.row.is_full

    @property
    def since(self) -> datetime | None:
        """The watermark that it starts from; None for a full run."""
        return self.row.since

    @property
    def captured_at(self) -> datetime:
        """The database's time before the first fetch. The watermark moves to it when the run completes."""
        return self.row.captured_at

    @property
    def error(self) -> str | None:
        """Why it failed."""
        return self.row.error

    @property
    def counts(self) -> dict[str, int]:
        """Progress: partitions, those ended and failed; pages; records fetched, staged, consolidated and retired."""
        row = self.row
        return {
            "partitions": row.partitions,
            "ended": row.parts_ended,
            "failed": row.parts_failed,
            "pages": row.pages,
            "records": row.records,
            "staged": row.staged,
            "consolidated": row.consolidated,
            "retired": row.retired,
        }

    @property
    def elapsed(self) -> timedelta:
        """Time from its start to its end, or to its last change of state."""
        return (self.row.finished_at or self.row.moved_at) - self.row.created_at

    @property
    def ended(self) -> bool:
        """Whether it has completed, failed or been cancelled."""
        return self.row.state in PIPELINE_ENDED


class PipelineRun(PipelineRunSnapshot):
    """Handle of a pipeline run: a snapshot of it, and the verbs on it."""

    def refresh(self) -> Self:
        """Read the run again, and return this handle. `NotFound`."""
        row = self._engine.store.pipeline_get(self.id)
        if row is None:
            raise NotFound("pipeline_run", str(self.id))
        self.row = row
        return self

    def wait(self, timeout: float | None = None, until: Collection[str] | None = None) -> Self:
        """Wait until the run is in one of the states `until`; by default, until it has ended. Return this
        handle, read again. `RunTimeout` (a TimeoutError) after `timeout` seconds; the run continues."""
        sleep_through(self._wait_steps(timeout, until), self._engine.clock)
        return self

    def _wait_steps(self, timeout: float | None = None, until: Collection[str] | None = None) -> Iterator[float]:
        wanted = PIPELINE_ENDED if until is None else _checked(until)
        engine = self._engine
        begun = engine.clock.monotonic()

        def is_there() -> bool:
            there = self.refresh().state in wanted
            if self.ended and not there:
                raise RunTimeout(self.id, self.state, engine.clock.monotonic() - begun)
            return there

        def late(waited: float) -> RunTimeout:
            return RunTimeout(self.id, self.state, waited)

        yield from pauses_until(is_there, timeout, engine.clock, engine.settings, late)

    def retry(self, *, actor: str | None = None, reason: str | None = None) -> Self:
        """Retry a failed, skipped or cancelled run. Return this handle, read again.

        Only failed partitions are fetched again, from where they stopped; then the consolidation continues. If records
        were consolidated already, only the consolidation continues. `InvalidTransition` if the run is in progress or
        has completed, `RunInProgress` while another run of the watermark has not ended, `NotRetryable` if a newer run
        has completed or the staged records are gone. `NotFound`.
        """
        unwrap(self._engine.store.pipeline_retry(self.id, *actor_and_reason(actor, reason, self._engine.settings)))
        return self.refresh()

    def cancel(self, *, actor: str | None = None, reason: str | None = None) -> Self:
        """Cancel the run at once, and its jobs: pending ones at once, running ones within a second or two. The
        watermark stays, and so do records that were consolidated. Cancelling it again is a no-op. Return this handle,
        read again. `InvalidTransition` if the run has completed or failed, `NotFound`."""
        engine = self._engine
        who, why = actor_and_reason(actor, reason, engine.settings)
        unwrap(engine.store.pipeline_cancel(self.id, who, why))
        if any(engine.store.job_list(JobSearch(run_id=self.id, state=state), None, 1).rows for state in _IN_FLIGHT):
            JobSelection(JobSearch(run_id=self.id), engine).cancel(actor=who, reason=why).wait()
        return self.refresh()

    def force(self, *, actor: str | None = None, reason: str | None = None) -> Self:
        """Consolidate what a skipped run has fetched, in spite of its failed partitions. A reason is required. Return
        this handle, read again. `InvalidTransition`, `NotFound`."""
        who, why = reason_needed(actor, reason, self._engine.settings, "a reason: forcing a run needs one")
        unwrap(self._engine.store.pipeline_force(self.id, who, why))
        return self.refresh()

    def partitions(self, state: str | None = None) -> Iterator[PartitionRow]:
        """Yield its partitions by number, all or those in a state. `InvalidInput`."""
        return items_of(self._partitions_pages(state), self._engine.clock)

    def _partitions_pages(self, state: str | None = None) -> Iterator[tuple[list[PartitionRow], float]]:
        if state is not None and state not in PARTITION.states:
            raise InvalidInput("state", repr(state)[:80], ", ".join(PARTITION.states))
        after = 0
        while found := self._engine.store.partition_list(self.id, state=state, after_n=after, limit=_PAGE):
            yield found, 0.0
            after = found[-1].n

    def history(self) -> list[TransitionRow]:
        """Return every transition of the run in order, with actor and reason."""
        return self._engine.store.transitions("pipeline_run", str(self.id))


def _checked(until: Collection[str]) -> frozenset[str]:
    wanted = frozenset((until,) if isinstance(until, str) else until)
    if not wanted or not wanted <= set(PIPELINE_RUN.states):
        raise InvalidInput("until", repr(until)[:80], f"some of {', '.join(PIPELINE_RUN.states)}")
    return wanted
