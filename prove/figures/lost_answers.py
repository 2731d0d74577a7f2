"""P3: commits whose request or answer is lost, on both databases, and a PostgreSQL server that crashes after them."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace

from detent.testing.postgres import find_binaries, start_cluster
from prove.figure import Budget, Tally
from prove.lost_answers.sweep import sweep

__all__ = ["run"]

_SQLITE, _POSTGRES = 0.3, 0.7
"""The share of the time that is left. Crashes have the rest."""


def run(budget: Budget) -> Tally:
    """Lose something at every commit of every deed and workflow, in an order drawn from the seed."""
    rounds = budget.count(commit=1, nightly=1, release=3)
    tally = Tally()
    _add(tally, sweep(_part(budget, _SQLITE), "sqlite", rounds=rounds), "SQLite")
    _add(tally, sweep(_part(budget, _POSTGRES), "postgres", rounds=rounds), "PostgreSQL")
    binaries = find_binaries()
    if not binaries:
        tally.notes.append("there are no binaries of PostgreSQL here, so no server crashed")
        return tally
    with start_cluster(bin_dir=binaries[0]) as cluster:
        most = budget.count(commit=3, nightly=100, release=1_000)
        _add(tally, sweep(_part(budget, 1.0), "postgres", cluster=cluster, most=most), "PostgreSQL")
    return tally


def _part(budget: Budget, share: float) -> Budget:
    left = budget.began_at + budget.seconds - time.monotonic()
    return replace(budget, seconds=max(1.0, left * share), began_at=time.monotonic())


def _add(tally: Tally, found: Tally, name: str) -> None:
    found.injected = Counter({f"{what}, {name}": count for what, count in found.injected.items()})
    found.notes = [f"{name}: {note}" for note in found.notes]
    tally.add(found)
