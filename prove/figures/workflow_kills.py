"""P15: SIGKILL at the statements of workers that run workflows, on both databases."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace

from prove.figure import Budget, Tally
from prove.kills.scene import Kind
from prove.workflows.sweep import sweep

__all__ = ["run"]

_SHARES: tuple[tuple[Kind, float], ...] = (("sqlite", 0.5), ("postgres", 1.0))
"""The share of the time that is left."""
_NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


def run(budget: Budget) -> Tally:
    """Kill before every statement of every workflow; a release kills after each, too, and in pairs. PostgreSQL has the
    time that SQLite leaves."""
    pairs, most = budget.tier == "release", budget.count(commit=200, nightly=20_000, release=100_000)
    sides = (False, True) if pairs else (False,)
    tally = Tally()
    for kind, share in _SHARES:
        left = budget.began_at + budget.seconds - time.monotonic()
        part = replace(budget, seconds=left * share, began_at=time.monotonic())
        found = sweep(part, kind, sides=sides, pairs=pairs, most=most)
        found.injected = Counter({f"{what}, {_NAMES[kind]}": count for what, count in found.injected.items()})
        found.notes = [f"{_NAMES[kind]}: {note}" for note in found.notes]
        tally.add(found)
    return tally
