"""What a figure is: a fault that is injected many times, and what came of it.

A figure is a module with a function `run(budget) -> Tally`. `prove/figures/__init__.py` lists them all.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Budget", "Tally", "Tier"]

Tier = Literal["commit", "nightly", "release"]


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a figure may do. It does what `count` asks for, and stops early when `seconds` have passed."""

    tier: Tier
    seed: int
    """Decides everything that is random. The same seed makes the same choices."""
    seconds: float
    processes: int = os.cpu_count() or 1
    began_at: float = field(default_factory=time.monotonic)

    @property
    def is_spent(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() - self.began_at >= self.seconds

    def count(self, *, commit: int, nightly: int, release: int) -> int:
        """Return how often this tier injects something."""
        return {"commit": commit, "nightly": nightly, "release": release}[self.tier]


@dataclass(slots=True)
class Tally:
    """What was injected, how often, and what came of it. All of `lost`, `doubled`, `stuck` and `wrong` must be 0."""

    injected: Counter[str] = field(default_factory=Counter)
    """What was done to Detent, in words ("SIGKILL before a statement, SQLite"), and how often."""
    lost: int = 0
    """Jobs, effects or records that were acknowledged and are gone."""
    doubled: int = 0
    """Effects that happened twice."""
    stuck: int = 0
    """Jobs, runs or processes that did not come to rest."""
    wrong: int = 0
    """Everything else that a promise rules out: a violated invariant, a wrong answer, an unexpected error."""
    covered: Counter[str] = field(default_factory=Counter)
    """How often each point was reached: "transition job: pending -> running (claim)", "sqlstate 40001",
    "error LeaseLost", "fault lost answer". `prove/coverage.py` finds them in databases and errors. A point that must be
    reached (`prove/required_points.py`) and was not makes a long tier fail."""
    stories: list[str] = field(default_factory=list)
    """One text for each finding: how to repeat it, and what happened."""
    notes: list[str] = field(default_factory=list)
    """What a reader of the table should know: speeds, sizes, what was left out."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not (self.lost or self.doubled or self.stuck or self.wrong)

    def add(self, other: Tally) -> None:
        """Add what another process found."""
        self.injected.update(other.injected)
        self.covered.update(other.covered)
        self.lost += other.lost
        self.doubled += other.doubled
        self.stuck += other.stuck
        self.wrong += other.wrong
        self.stories += other.stories
        self.notes += other.notes
