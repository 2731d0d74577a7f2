"""From a schedule that failed to a short one that fails in the same way, and its story in words."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence

from prove.simulation.schedule import Outcome, Simulator

__all__ = ["shrunk", "told"]

_RUNS_MAX = 400
_QUIET = re.compile(
    r"^(worker_seen|alert_|service_take|limit_refill|log_growth|counts_fold|batch_prune|job_prune|pipeline_prune|log_prune"
    r"|key_expire|now|task_times|recovery_list|limit_prune|cancel_find|ids_reserve|operation_list|schedule_|job_silent)"
)
"""What workers do all the time, and what rarely matters to a story."""


def shrunk(simulator: Simulator, failed: Outcome, seconds_max: float) -> Outcome:
    """Return the shortest schedule found in that time that fails like this one. Faults and changes of turn are taken
    out, one group of choices after another: zero is always the plain choice."""
    best, runs = failed, 0
    until = time.monotonic() + seconds_max

    def fails(choices: Sequence[int]) -> Outcome | None:
        nonlocal runs
        runs += 1
        found = simulator.run(failed.seed, choices)
        is_same = _kind(found.failure) == _kind(failed.failure)
        return found if is_same and len(found.told) <= len(best.told) else None

    size = max(1, len(best.choices) // 2)
    while size and runs < _RUNS_MAX:
        smaller: Outcome | None = None
        for candidate in _without(best.choices, size):
            if runs >= _RUNS_MAX or time.monotonic() >= until:
                break
            smaller = fails(candidate)
            if smaller is not None:
                best = smaller
                break
        if smaller is None:
            size //= 2
    return best


def _without(choices: list[int], size: int) -> Iterator[list[int]]:
    """Yield the choices without one group of them, or with zeros in its place."""
    for start in range(len(choices) - size, -1, -size):
        group = choices[start : start + size]
        if any(group):
            yield [*choices[:start], *[0] * size, *choices[start + size :]]
    for start in range(len(choices) - size, -1, -size):
        yield choices[:start] + choices[start + size :]


def _kind(failure: str) -> str:
    return re.sub(r"\d+", "#", failure)[:60]


def told(outcome: Outcome) -> Iterator[str]:
    """Yield the lines of the story of a schedule."""
    for at, who, line in outcome.story:
        if line and not _QUIET.match(line):
            yield f"{at:9.3f} s  {who:<22} {line}"
    yield f"{outcome.seconds:9.3f} s  {outcome.failure}"
