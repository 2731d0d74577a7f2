"""The figures of `make prove`: which there are, and how much time each may take.

A figure is a module in this folder with a function `run(budget: Budget) -> Tally`. The runner starts each in a process
of its own, with `PYTHONHASHSEED=0` and, in `DETENT_TEST_DATABASE_URL`, a PostgreSQL server that all figures share. A
figure that restarts its server starts one of its own.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from prove.figure import Budget, Tally, Tier

__all__ = ["FIGURES", "Figure", "figures_named"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    id: str
    title: str
    module: str
    """The name of a module in this folder."""
    commit: float
    """Seconds that it may take in the tier `commit`."""
    nightly: float
    release: float
    cores: int = 1
    """How many processes it may use at once. The runner never starts more than the machine has cores."""

    def seconds(self, tier: Tier) -> float:
        """Return how long the figure may take."""
        return {"commit": self.commit, "nightly": self.nightly, "release": self.release}[tier]

    def run(self, budget: Budget) -> Tally:
        """Run it in this process."""
        module: Any = importlib.import_module(f"prove.figures.{self.module}")
        tally: Tally = module.run(budget)
        return tally


_MINUTE, _HOUR = 60.0, 3600.0
# fmt: off
FIGURES: tuple[Figure, ...] = (
    Figure("P1", "kills at statements, SQLite", "kills_sqlite", commit=14, nightly=500, release=2 * _HOUR),
    Figure("P2", "kills at statements, PostgreSQL", "kills_postgres", commit=16, nightly=600, release=2 * _HOUR),
    Figure("P3", "lost answers to commits", "lost_answers", commit=14, nightly=300, release=2 * _HOUR),
    Figure("P4", "restarts and fail-overs of PostgreSQL", "restarts", commit=11, nightly=400, release=2 * _HOUR),
    Figure("P5", "simulated workers, by seed", "simulation", commit=40, nightly=1300, release=4 * _HOUR, cores=2),
    Figure("P6", "every order of moves", "exhaustive_model", commit=14, nightly=400, release=2 * _HOUR),
    Figure("P7", "seeded defects, each found by its proof", "seeded_defects", commit=14, nightly=500, release=_HOUR),
    Figure("P8", "SQLite on a bad disk", "storage_faults", commit=14, nightly=300, release=2 * _HOUR),
    Figure("P9", "hostile input through every door", "hostile_input", commit=15, nightly=200, release=2 * _HOUR),
    Figure("P10", "workers that stand still beyond their lease", "zombies", commit=10, nightly=400, release=2 * _HOUR),
    Figure("P12", "upgrades of a database in use", "upgrades", commit=20, nightly=300, release=2 * _HOUR),
    Figure("P14", "attacks on routes, roles and webhooks", "security", commit=15, nightly=80, release=_HOUR),
    Figure("P15", "kills at statements of workflows", "workflow_kills", commit=16, nightly=400, release=2 * _HOUR),
    Figure("P16", "kills of a server", "http_kills", commit=15, nightly=120, release=_HOUR),
)
# fmt: on
"""In the order of their ids."""


def figures_named(names: str) -> tuple[Figure, ...]:
    """Return the figures in a list such as `P5,exhaustive_model`. Raises ValueError for a name that is not one."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    known = {name: figure for figure in FIGURES for name in (figure.id, figure.module)}
    if unknown := [name for name in wanted if name not in known]:
        raise ValueError(f"There is no figure {', '.join(unknown)}. Figures: {', '.join(known)}.")
    return tuple(figure for figure in FIGURES if figure.id in wanted or figure.module in wanted)
