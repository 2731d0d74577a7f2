"""The progress of pipeline runs: partitions, elapsed time, and the causes of failures (P7)."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from msgspec import Struct

from detent.errors import NotFound, essence
from detent.lifecycle.library import PARTITION
from detent.model.pipeline_records import PIPELINE_ENDED, PartitionRow, PipelineRunRow
from detent.store.contract import Verbs

__all__ = ["Failure", "PipelineView", "cause", "pipeline_view", "share_done"]

_PAGE = 1000
_FATAL = "detent.declare.signals.Fatal: "


class Failure(Struct, frozen=True, kw_only=True):
    """An error, how many partitions failed with it, and the first of them with its offset."""

    error: str
    partitions: int
    key: str
    offset: str
    job_id: int


class PipelineView(Struct, frozen=True, kw_only=True):
    """The progress of a run at the time `at`.

    `done` is the share of its work that is done: partitions while they are fetched, then records while they are
    consolidated. `states` counts its partitions by state. `slowest` are partitions in progress, those that stored a
    page longest ago first.
    """

    run: PipelineRunRow
    at: datetime
    elapsed: float
    done: float
    records_per_second: float | None
    states: dict[str, int]
    slowest: list[PartitionRow]
    failures: list[Failure]


def pipeline_view(verbs: Verbs, run_id: int, *, slowest: int = 5) -> PipelineView:
    """Return the progress of a run. `NotFound`."""
    run = verbs.pipeline_get(run_id)
    if run is None:
        raise NotFound("pipeline_run", str(run_id))
    now = verbs.now()
    parts = _partitions(verbs, run_id)
    counted = Counter(part.state for part in parts)
    elapsed = ((run.finished_at or now) - run.created_at).total_seconds()
    under_way = [part for part in parts if part.state in ("in_progress", "fetching_pages")]
    under_way.sort(key=lambda part: part.paged_at or part.started_at or run.created_at)
    return PipelineView(
        run=run,
        at=now,
        elapsed=elapsed,
        done=share_done(run),
        records_per_second=run.records / elapsed if elapsed > 0 else None,
        states={state: counted[state] for state in PARTITION.states if counted[state]},
        slowest=under_way[:slowest],
        failures=_failures([part for part in parts if part.state == "failed"]),
    )


def share_done(run: PipelineRunRow) -> float:
    """Return the share of a run that is done: fetching counts as one half, consolidating as the other."""
    if run.state == "completed":
        return 1.0
    fetched = run.parts_ended / run.partitions if run.partitions else float(run.state != "created")
    taken_over = run.consolidated / run.staged if run.staged and run.state not in PIPELINE_ENDED else 0.0
    return (fetched + taken_over) / 2


def _partitions(verbs: Verbs, run_id: int) -> list[PartitionRow]:
    found: list[PartitionRow] = []
    while portion := verbs.partition_list(run_id, after_n=found[-1].n if found else 0, limit=_PAGE):
        found += portion
    return found


def _failures(failed: list[PartitionRow]) -> list[Failure]:
    """Return the failures by cause, the most frequent first."""
    by_error: dict[str, list[PartitionRow]] = {}
    for part in failed:
        by_error.setdefault(cause(part.error), []).append(part)
    found = [
        Failure(
            error=error,
            partitions=len(parts),
            key=parts[0].key,
            offset=parts[0].next_offset,
            job_id=parts[0].job_id,
        )
        for error, parts in by_error.items()
    ]
    return sorted(found, key=lambda failure: -failure.partitions)


def cause(error: str | None) -> str:
    """Return the first exception of a chain in one line: the original error, not those raised because of it."""
    first = (error or "").split("\n\nThe above exception was", 1)[0]
    return essence(first).removeprefix(_FATAL) or "no error recorded"
