"""P5: schedules of the simulation, each with faults of every kind."""

from __future__ import annotations

import time

from prove.figure import Budget, Tally
from prove.simulation.exploration import Explored, explored, story_of

__all__ = ["run"]

_SEEDS_APART = 10_000_000
"""Two seeds of a run have no schedules in common."""
_STORIES_MAX = 3
_STORY_SHARE = 0.1
"""The share of its time that the figure keeps for stories: making one shorter takes many schedules."""
_STORY_SECONDS_MIN = 2.0


def run(budget: Budget) -> Tally:
    """Run as many schedules as fit. Those that break a promise are repeated and told."""
    first = budget.seed * _SEEDS_APART
    schedules = budget.count(commit=20_000, nightly=1_000_000, release=1_000_000)
    began_at = time.monotonic()
    found = Explored()
    for group in explored(first, schedules, budget.processes, budget.began_at + budget.seconds * (1 - _STORY_SHARE)):
        found.add(group)
        if len(found.failed) >= _STORIES_MAX:
            break
    seconds = time.monotonic() - began_at
    tally = Tally(injected=found.injected, covered=found.covered)
    for _, breach in found.failed:
        setattr(tally, breach, getattr(tally, breach) + 1)
    story_seconds = max(_STORY_SECONDS_MIN, budget.seconds * _STORY_SHARE / _STORIES_MAX)
    for seed, _ in found.failed[:_STORIES_MAX]:
        story = story_of(seed, story_seconds) or [f"seed {seed} failed, and not when it was repeated"]
        tally.stories.append("\n".join(story))
    tally.notes.append(
        f"{found.schedules:,} schedules from seed {first} on, {found.calls:,} calls of the database, "
        f"{found.schedules / seconds:.0f} schedules/s; `python -m prove simulate --replay SEED` repeats one"
    )
    return tally
