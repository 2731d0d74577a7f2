"""The handle of a pipeline run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import Any

from detent.client.client import actor_and_reason, check_id, one
from detent.declare.settings import Settings
from detent.errors import InvalidInput, NotFound, RunTimeout
from detent.lifecycle.library import PARTITION, PIPELINE_RUN
from detent.model import jsondoor
from detent.model.clock import Clock
from detent.model.pipeline_records import PIPELINE_ENDED, PartitionRow, PipelineRunRow
from detent.model.records import TransitionRow
from detent.store.contract import Verbs

__all__ = ["PipelineRun", "find_run"]

_FIRST_PAUSE = 0.01
_PAGE = 1000


def find_run(verbs: Verbs, run_id: int | str, clock: Clock, settings: Settings) -> PipelineRun:
    """Return the run as it stands. `NotFound`."""
    row = verbs.pipeline_get(check_id(run_id))
    if row is None:
        raise NotFound("pipeline_run", str(run_id))
    return PipelineRun(row, verbs, clock, settings)


class PipelineRun:
    """A run by its id. It shows the run as of the last look; `refresh()` looks again."""

    def __init__(self, row: PipelineRunRow, verbs: Verbs, clock: Clock, settings: Settings) -> None:
        self.row = row
        self._verbs = verbs
        self._clock = clock
        self._settings = settings

    def __repr__(self) -> str:
        return f"<PipelineRun {self.id} {self.row.name} {self.state}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PipelineRun) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def id(self) -> int:
        """Its number."""
        return self.row.id

    @property
    def state(self) -> str:
        """Where it is in its lifecycle."""
        return self.row.state

    @property
    def pipeline(self) -> str:
        """The name of its pipeline."""
        return self.row.name

    @property
    def payload(self) -> Any:
        """The pipeline's own fields as JSON values."""
        return jsondoor.decode(self.row.payload, depth_max=self._settings.depth_max)

    @property
    def is_full(self) -> bool:
        """Whether it fetches everything, and not only what changed since the watermark."""
        return self.row.is_full

    @property
    def since(self) -> datetime | None:
        """The watermark from which it goes on; None for a full run."""
        return self.row.since

    @property
    def captured_at(self) -> datetime:
        """The database's time before the first fetch: what the watermark becomes when the run completes."""
        return self.row.captured_at

    @property
    def error(self) -> str | None:
        """Why it failed."""
        return self.row.error

    @property
    def counts(self) -> dict[str, int]:
        """How far it is: partitions in all, ended and failed; pages; records fetched, staged, consolidated, retired."""
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
        """From its start to its end, or to the moment it last moved."""
        return (self.row.finished_at or self.row.moved_at) - self.row.created_at

    @property
    def ended(self) -> bool:
        """Whether it has completed or failed."""
        return self.row.state in PIPELINE_ENDED

    def partitions(self, state: str | None = None) -> Iterator[PartitionRow]:
        """Its partitions (in that state), by number."""
        if state is not None and state not in PARTITION.states:
            raise InvalidInput("state", repr(state)[:80], ", ".join(PARTITION.states))
        after = 0
        while found := self._verbs.partition_list(self.id, state=state, after_n=after, limit=_PAGE):
            yield from found
            after = found[-1].n

    def transitions(self) -> list[TransitionRow]:
        """Every change of its state, in order."""
        return self._verbs.transitions("pipeline_run", str(self.id))

    def refresh(self) -> PipelineRun:
        """Look again. `NotFound`."""
        row = self._verbs.pipeline_get(self.id)
        if row is None:
            raise NotFound("pipeline_run", str(self.id))
        self.row = row
        return self

    def retry(self, *, actor: str, reason: str | None = None) -> PipelineRun:
        """Bring a failed or skipped run back to work. Return this handle, refreshed.

        Only failed partitions are fetched again, from where they stopped; then the consolidation goes on. If records
        were consolidated already, only the consolidation goes on. `InvalidTransition` if the run is at work or has
        completed, `RunInProgress` while another run of the watermark has not ended, `NotRetryable` if a newer run has
        completed or what the run would go on with is gone. `NotFound`.
        """
        one(self._verbs.pipeline_retry(self.id, *actor_and_reason(actor, reason, self._settings)))
        return self.refresh()

    def wait(self, timeout: float | None = None, until: Collection[str] | None = None) -> PipelineRun:
        """This handle, when the run is in one of the states `until`; without it, when it has completed or failed.
        `RunTimeout` (a TimeoutError) after `timeout` seconds; the run goes on."""
        for pause in self.pauses(timeout, until):
            self._clock.sleep(pause)
        return self

    def pauses(self, timeout: float | None = None, until: Collection[str] | None = None) -> Iterator[float]:
        """How `wait` waits: each step looks again and says how long to pause."""
        wanted = PIPELINE_ENDED if until is None else _checked(until)
        if timeout is not None and not timeout >= 0:
            raise InvalidInput("timeout", repr(timeout), "zero or more seconds, or None for as long as it takes")
        begun, pause = self._clock.monotonic(), _FIRST_PAUSE
        while self.refresh().state not in wanted:
            waited = self._clock.monotonic() - begun
            if self.ended or (timeout is not None and waited >= timeout):
                raise RunTimeout(self.id, self.state, waited)
            yield pause if timeout is None else min(pause, timeout - waited)
            pause = min(pause * 1.5, self._settings.wait_poll)


def _checked(until: Collection[str]) -> frozenset[str]:
    wanted = frozenset((until,) if isinstance(until, str) else until)
    if not wanted or not wanted <= set(PIPELINE_RUN.states):
        raise InvalidInput("until", repr(until)[:80], f"some of {', '.join(PIPELINE_RUN.states)}")
    return wanted
