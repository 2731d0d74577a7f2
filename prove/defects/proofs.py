"""The proofs that have to find a defect. Each runs in a process in which the defect is planted."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prove.exhaustive.moves import Bounds
    from prove.kills.scene import Kind

__all__ = [
    "Proof",
    "every_order",
    "figure",
    "kills",
    "lives",
    "lost_answers",
    "people",
    "restarts",
    "simulation",
    "standing_still",
    "tests",
]

_SEEDS_APART = 10_000_000


@dataclass(frozen=True, slots=True)
class Proof:
    """`find` takes a seed and a number of seconds, and returns the first finding in words, or nothing."""

    kind: str
    find: Callable[[int, float], str]
    seconds: float
    """How long it may take. A defect that is not found until then has survived."""
    names: tuple[str, ...] = ()
    """The tests, if it is made of tests."""


def simulation(schedules: int = 1000) -> Proof:
    """So many schedules of the simulation."""

    def find(seed: int, seconds: float) -> str:
        from prove.simulation.schedule import shared_simulator

        first, until = seed * _SEEDS_APART, time.monotonic() + seconds
        for number in range(schedules):
            if time.monotonic() > until:
                break
            outcome = shared_simulator().run(first + number)
            if outcome.failure:
                return f"seed {first + number} (schedule {number + 1}): {outcome.failure}"
        return ""

    return Proof("simulation", find, 600)


def every_order() -> Proof:
    """Every order of moves of two jobs."""
    return _walk(lambda bounds: bounds(attempts=(2, 1), releases=0, has_people=False))


def people() -> Proof:
    """Every order of moves of two jobs and of people who retry, discard, force and settle."""
    return _walk(lambda bounds: bounds(attempts=(1, 1), releases=0, has_people=True))


def _walk(bounds_of: Callable[[type[Bounds]], Bounds]) -> Proof:
    def find(seed: int, seconds: float) -> str:
        from prove.exhaustive.moves import Bounds
        from prove.exhaustive.search import Search

        return _first(Search(bounds_of(Bounds), _budget(seed, seconds), found_max=1).run())

    return Proof("every order of moves", find, 300)


def kills(kind: Kind, *deeds: str) -> Proof:
    """Kills at the statements of these deeds, one by one and in pairs."""

    def find(seed: int, seconds: float) -> str:
        from prove.kills.sweep import DEEDS, sweep

        return _first(sweep(_budget(seed, seconds), kind, {name: DEEDS[name] for name in deeds}, findings_max=1))

    return Proof("kills at statements", find, 300)


def lives(kind: Kind, *names: str) -> Proof:
    """Kills at the statements of these workflows."""

    def find(seed: int, seconds: float) -> str:
        from prove.workflows.sweep import sweep

        return _first(sweep(_budget(seed, seconds), kind, names, findings_max=1))

    return Proof("kills in workflows", find, 300)


def lost_answers(kind: Kind, *deeds: str) -> Proof:
    """Commits of these deeds and workflows whose request or answer is lost."""

    def find(seed: int, seconds: float) -> str:
        from prove.lost_answers.sweep import sweep

        return _first(sweep(_budget(seed, seconds), kind, names=deeds, findings_max=1))

    return Proof("lost answers", find, 300)


def restarts(times: int) -> Proof:
    """Return the proof that restarts a PostgreSQL server under load, `times` times."""

    def find(seed: int, seconds: float) -> str:
        from detent.testing.postgres import find_binaries
        from prove.figures import restarts as figure

        return _first(figure.restarts(_budget(seed, seconds), find_binaries()[0], most=times))

    return Proof("restarts", find, 120)


def standing_still(kind: Kind, *moments: str) -> Proof:
    """Workers that stand still beyond their lease at these moments."""

    def find(seed: int, seconds: float) -> str:
        from prove.figures.zombies import ring_on
        from prove.zombies.pair import zombies

        most = 10 * len(moments)
        with ring_on(kind) as ring:
            return _first(zombies(_budget(seed, seconds), ring, seed=seed, most=most, moments=moments, findings_max=1))

    return Proof("workers that stand still", find, 120)


def figure(module: str, seconds: float = 120) -> Proof:
    """A figure in the size of a commit."""

    def find(seed: int, most: float) -> str:
        run = importlib.import_module(f"prove.figures.{module}").run
        return _first(run(_budget(seed, min(seconds, most))))

    return Proof("a figure", find, seconds)


def tests(*names: str) -> Proof:
    """Tests, of which every one must fail."""

    def find(_seed: int, _seconds: float) -> str:
        from prove.defects.named_tests import run_tests

        ran = run_tests(names)
        return f"failed: {', '.join(names)}" if ran.are_all and ran.failed == set(names) else ""

    return Proof("tests", find, 300, names)


def _budget(seed: int, seconds: float) -> Any:
    from prove.figure import Budget

    return Budget("commit", seed, seconds, 1)


def _first(tally: Any) -> str:
    return "" if tally.is_clean else str(tally.stories[0])
