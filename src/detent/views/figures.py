"""Figures for people and metrics: success rates, durations, transitions, batches, ops runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from detent.declare.settings import Settings
from detent.errors import InvalidInput
from detent.model import json_codec
from detent.model.clock import to_micros
from detent.model.figure_records import (
    AttemptFigures,
    BatchCount,
    BatchFigures,
    Durations,
    Figures,
    OpsFigures,
    RateCount,
    TaskFigures,
    TransitionCount,
    TransitionFigures,
)
from detent.model.ops_records import OPS_TASK, ops_state
from detent.store.contract import Verbs

__all__ = ["durations", "figures_since"]

_WINDOW = timedelta(hours=24)
_KEPT = timedelta(days=31)
_GIVEN_BACK = frozenset({"released", "snoozed", "throttled", "parked"})
_ENDS_OF_OPS = ("succeeded", "failed", "cancelled")

T = TypeVar("T")
K = TypeVar("K")


def figures_since(verbs: Verbs, since: datetime | None, task: str | None, settings: Settings) -> Figures:
    """Return the figures of one task or of all, from the beginning of the hour of `since` until now. Without `since`,
    they are those of the last 24 hours. `InvalidInput`, also for a time before the 31 days for which they are kept."""
    until = verbs.now()
    if since is not None:
        to_micros(since, field="since")
        if since < until - _KEPT - timedelta(hours=1):
            raise InvalidInput("since", since.isoformat(), f"at most {_KEPT.days} days ago: figures are kept that long")
    if task is not None:
        json_codec.text(task, field="task", bytes_max=settings.name_max)
    begin = (until - _WINDOW if since is None else since).astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    counts = verbs.figures(begin, task)
    tasks = [_task(name, rows) for name, rows in _grouped(counts, lambda one: one.task)]
    retries = {one.task: one.retries for one in tasks}
    batches = _grouped(verbs.batch_figures(begin), lambda one: one.batch)
    ops = [one for one in counts if one.task == OPS_TASK and one.to_state in _ENDS_OF_OPS]
    return Figures(
        since=begin,
        until=until,
        tasks=tasks,
        attempts=_attempts(counts),
        transitions=_transitions(counts),
        batches=[
            _batch(name, rows, retries.get(f"{name}.apply", 0))
            for name, rows in batches
            if task is None or task == f"{name}.apply"
        ],
        ops=[_ops(state, rows) for state, rows in _grouped(ops, lambda one: one.to_state)],
        ops_success_rate=next((one.success_rate for one in tasks if one.task == OPS_TASK), None),
    )


def _task(name: str, rows: Sequence[TransitionCount]) -> TaskFigures:
    succeeded = sum(one.moves for one in rows if one.outcome == "done")
    failed = sum(one.moves for one in rows if one.outcome and one.to_state in ("failed", "quarantined"))
    return TaskFigures(
        task=name,
        succeeded=succeeded,
        failed=failed,
        success_rate=_share(succeeded, failed),
        retries=sum(one.moves for one in rows if one.to_state == "pending" and one.outcome not in _GIVEN_BACK),
        throttled=sum(one.moves for one in rows if one.outcome == "throttled"),
    )


def _attempts(counts: Iterable[TransitionCount]) -> list[AttemptFigures]:
    found = []
    for (task, outcome), rows in _grouped(counts, lambda one: (one.task, one.outcome)):
        if outcome:
            called = [(one.bucket, one.moves, one.ran_us, one.ran_us_max) for one in rows if one.bucket >= 0]
            attempts = sum(one.moves for one in rows)
            found.append(AttemptFigures(task=task, outcome=outcome, attempts=attempts, **_durations(called)))
    return found


def _transitions(counts: Iterable[TransitionCount]) -> list[TransitionFigures]:
    """Return the moves by task and states. Every attempt is two moves: to running, and away from it."""
    moves = []
    for one in counts:
        moves.append(((one.task, one.from_state, one.to_state), one.moves, one.held_us, one.held_us_max))
        if one.outcome:
            moves.append(((one.task, "pending", "running"), one.moves, one.waited_us, one.waited_us_max))
    return [
        TransitionFigures(
            task=task,
            from_state=from_state,
            to_state=to_state,
            moves=(count := sum(moved for _, moved, _, _ in rows)),
            mean_seconds=sum(held for _, _, held, _ in rows) / count / 1e6,
            max_seconds=max(longest for _, _, _, longest in rows) / 1e6,
        )
        for (task, from_state, to_state), rows in _grouped(moves, lambda move: move[0])
    ]


def _ops(state: str, rows: Sequence[TransitionCount]) -> OpsFigures:
    claimed = [one for one in rows if one.outcome]
    count = sum(one.moves for one in claimed)
    return OpsFigures(
        status=ops_state(state, False),
        runs=sum(one.moves for one in rows),
        mean_seconds=sum(one.held_us for one in claimed) / count / 1e6 if count else None,
        max_seconds=max(one.held_us_max for one in claimed) / 1e6 if count else None,
    )


def _batch(name: str, rows: Sequence[BatchCount], retries: int) -> BatchFigures:
    applied, failed = sum(one.applied for one in rows), sum(one.failed for one in rows)
    return BatchFigures(
        batch=name,
        applies=sum(one.applies for one in rows),
        runs=sum(one.runs for one in rows),
        applied=applied,
        failed=failed,
        success_rate=_share(applied, failed),
        retries=retries,
        **_durations([(one.bucket, one.runs, one.ran_us, one.ran_us_max) for one in rows if one.runs]),
    )


def _share(succeeded: int, failed: int) -> float | None:
    return succeeded / (succeeded + failed) if succeeded + failed else None


def durations(counts: Iterable[RateCount]) -> Durations:
    """Return the mean, the percentiles and the maximum of the times of these moves."""
    buckets = [(one.bucket, one.moves, one.us, one.us_max) for one in counts]
    return Durations(count=sum(moves for _, moves, _, _ in buckets), **_durations(buckets))


def _durations(buckets: Iterable[tuple[int, int, int, int]]) -> dict[str, float | None]:
    """Return mean, median, 95th percentile and maximum of times in microseconds, which are given by bucket: their
    number, sum and maximum.

    A percentile is the mean of the bucket that it falls into. Its error is less than the width of the bucket, which is
    less than a quarter of its lower bound.
    """
    added: dict[int, tuple[int, int]] = {}
    longest = None
    for bucket, count, total, most in buckets:
        so_far = added.get(bucket, (0, 0))
        added[bucket] = (so_far[0] + count, so_far[1] + total)
        longest = most if longest is None else max(longest, most)
    count = sum(one for one, _ in added.values())
    total = sum(one for _, one in added.values())
    return {
        "mean_seconds": total / count / 1e6 if count else None,
        "p50_seconds": _percentile(added, count, 0.5),
        "p95_seconds": _percentile(added, count, 0.95),
        "max_seconds": None if longest is None else longest / 1e6,
    }


def _percentile(added: dict[int, tuple[int, int]], count: int, share: float) -> float | None:
    so_far = 0
    for _, (here, total) in sorted(added.items()):
        so_far += here
        if so_far >= share * count:
            return total / here / 1e6
    return None


def _grouped(rows: Iterable[T], key: Callable[[T], K]) -> list[tuple[K, list[T]]]:
    groups: dict[Any, list[T]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return sorted(groups.items())
