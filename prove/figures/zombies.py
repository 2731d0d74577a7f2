"""P10: workers that stand still for longer than their lease, at every moment of a job, and then go on."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from detent.testing.postgres import start_cluster
from detent.testing.postgres_guardian import MEMORY
from prove.figure import Budget, Tally
from prove.kills.scene import Kind
from prove.zombies.pair import FAULT, zombies
from tests.faults.ledger import Ring

__all__ = ["ring_on", "run"]

_NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


def run(budget: Budget) -> Tally:
    """Run several pairs of workers side by side, since they stand still for most of the time. Each has a database and a
    seed of its own."""
    pairs = budget.count(commit=1, nightly=2, release=3)
    most = budget.count(commit=5, nightly=130, release=350)
    kinds: list[Kind] = ["sqlite", "postgres"] * pairs

    def one(number: int) -> Tally:
        with ring_on(kinds[number]) as ring:
            found = zombies(budget, ring, seed=budget.seed * 100 + number, most=most)
        name = _NAMES[kinds[number]]
        found.injected[f"{FAULT}, {name}"] = found.injected.pop(FAULT)
        found.notes = [f"{name}: {note}" for note in found.notes]
        found.stories = [f"{name}, {story}" for story in found.stories]
        return found

    tally = Tally()
    with ThreadPoolExecutor(len(kinds)) as pool:
        for found in pool.map(one, range(len(kinds))):
            tally.add(found)
    return tally


@contextmanager
def ring_on(kind: Kind) -> Iterator[Ring]:
    """Open a place for zombies on a new database, which is removed at the end."""
    # In memory, so that few workers stand still within a sync: then they hold the lock of the file.
    place = MEMORY if Path(MEMORY).is_dir() else None
    with tempfile.TemporaryDirectory(prefix="detent-zombies-", dir=place) as folder:
        if kind == "sqlite":
            with Ring(f"sqlite:///{folder}/ring.db", Path(folder)) as ring:
                yield ring
            return
        with start_cluster() as cluster:
            name = cluster.new_name("zombies")
            try:
                with Ring(cluster.create_database(name), Path(folder)) as ring:
                    yield ring
            finally:
                cluster.drop_database(name)
