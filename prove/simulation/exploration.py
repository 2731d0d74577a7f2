"""Many schedules one after another: seeds in a row, on several processes, and what came of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat

from prove.coverage import errors_counted, fault_points
from prove.simulation.checks import Breach

__all__ = ["Explored", "explored", "story_of"]

_BATCH = 50


@dataclass
class Explored:
    """Some schedules."""

    schedules: int = 0
    calls: int = 0
    """Calls of the database."""
    injected: Counter[str] = field(default_factory=Counter)
    covered: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[int, Breach]] = field(default_factory=list)
    """Seeds of which a promise was broken, and how."""

    def add(self, other: Explored) -> None:
        """Add what another process has run."""
        self.schedules += other.schedules
        self.calls += other.calls
        self.injected.update(other.injected)
        self.covered.update(other.covered)
        self.failed += other.failed


def explored(first: int, schedules: int, processes: int, until: float | None = None) -> Iterator[Explored]:
    """Run the schedules of `schedules` seeds in a row, and yield them in groups. Each group stops at its first failure,
    and all stop at the moment `until` of the monotonic clock."""
    starts = range(first, first + schedules, _BATCH)
    counts = [min(_BATCH, first + schedules - start) for start in starts]
    with ProcessPoolExecutor(processes) as pool:
        try:
            yield from pool.map(_run_batch, starts, counts, repeat(until))
        finally:
            pool.shutdown(cancel_futures=True)


def _run_batch(first: int, count: int, until: float | None) -> Explored:
    from prove.simulation.schedule import shared_simulator

    batch = Explored()
    with errors_counted() as errors:
        for seed in range(first, first + count):
            if until is not None and time.monotonic() >= until:
                break
            outcome = shared_simulator().run(seed)
            batch.schedules += 1
            batch.calls += outcome.calls
            batch.injected.update(outcome.injected)
            batch.covered.update(outcome.transitions)
            if outcome.failure:
                batch.failed.append((seed, outcome.breach))
                break
    batch.covered.update(errors)
    for what, times in batch.injected.items():
        batch.covered.update(dict.fromkeys(fault_points(what), times))
    return batch


def story_of(seed: int, seconds_max: float = 60.0) -> list[str]:
    """Run the schedule of a seed again. If it fails, make it as short as possible within that time, and return its
    story, line by line; otherwise return nothing."""
    from prove.simulation.schedule import shared_simulator
    from prove.simulation.shrinking import shrunk, told

    outcome = shared_simulator().run(seed)
    if not outcome.failure:
        return []
    short = shrunk(shared_simulator(), outcome, seconds_max)
    lines = [
        f"seed {seed}: {outcome.failure}",
        f"the same in {len(short.told)} steps instead of {len(outcome.told)}:",
    ]
    return [*lines, *told(short)]
