"""P12: upgrades of a database in use, killed at their statements, on both databases."""

from __future__ import annotations

import time
from dataclasses import replace

from prove.figure import Budget, Tally
from prove.kills.scene import Kind
from prove.upgrades.sweep import sweep

__all__ = ["run"]

_SHARES: tuple[tuple[Kind, float], ...] = (("sqlite", 0.4), ("postgres", 1.0))
"""The share of the time that is left."""


def run(budget: Budget) -> Tally:
    """Kill before and after each statement of the upgrade. PostgreSQL has the time that SQLite leaves."""
    tally = Tally()
    for kind, share in _SHARES:
        left = budget.began_at + budget.seconds - time.monotonic()
        part = replace(budget, seconds=left * share, began_at=time.monotonic())
        found = sweep(part, kind, most=budget.count(commit=8, nightly=2_000, release=20_000))
        found.notes = [f"{kind}: {note}" for note in found.notes]
        tally.add(found)
    return tally
