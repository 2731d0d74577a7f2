"""Loses the request or the answer of every commit of every deed, in an order drawn from the seed.

One injection: a process does a deed, and loses something at its k-th commit. It goes on at once, as a worker does that
waits for its database. Then leases run out, others go on, and everything must have come to its end, once.
"""

from __future__ import annotations

import itertools
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from detent.errors import DatabaseUnreachable, OutcomeUnknown
from detent.errors.database import OUTAGES
from detent.testing.harness import Harness
from detent.testing.postgres import Cluster
from detent.testing.stores import TableClock, plain_connection, row_violations
from prove.coverage import error_points, errors_counted, fault_points
from prove.figure import Budget, Tally
from prove.kills.deed import Deed, Finding, settle, work
from prove.kills.scene import Kind, Scenes, declare_deeds
from prove.kills.sweep import DEEDS
from prove.lost_answers.ways import CRASH, HALF_OPEN, FileWay, Loss, ServerWay, Way
from prove.workflows.lives import LIVES
from prove.workflows.sweep import Stage, small_portions

__all__ = ["Point", "sweep"]

_SCENE_DEEDS = 60
_TRIES_MAX = 20
"""How often a worker tries again that meets an outage. After a crash of the server, some connections are broken."""


@dataclass(frozen=True)
class Point:
    """The k-th commit of a deed, and what is lost of it."""

    deed: str
    loss: Loss
    k: int

    def __str__(self) -> str:
        return f"{self.deed!r}: {self.loss} at commit {self.k}"


def sweep(
    budget: Budget,
    kind: Kind,
    *,
    cluster: Cluster | None = None,
    names: tuple[str, ...] = (),
    rounds: int = 1,
    most: int = 1_000_000,
    findings_max: int = 30,
) -> Tally:
    """Lose something at every commit of the deeds and workflows of these names (all if none), `rounds` times; stop when
    the budget is spent. With `cluster`, a server that the caller may stop, it crashes instead."""
    way: Way = FileWay() if kind == "sqlite" else ServerWay(cluster)
    tally, chance = Tally(), random.Random(budget.seed)
    with ExitStack() as exits:
        exits.enter_context(small_portions())
        stage = Stage(Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="detent-lost-"))))
        deeds = _deeds(stage, names)
        errors = exits.enter_context(errors_counted())

        def prepare(harness: Harness) -> None:
            declare_deeds(harness)
            stage.prepare(harness)

        with Scenes(kind, prepare, cluster=cluster, way=way.way_to) as scenes:
            run = _Sweep(way, chance, deeds, scenes, tally)
            for point in run.points(rounds):
                # However slow the machine is, once is the least.
                if (budget.is_spent and tally.injected) or tally.injected.total() >= most:
                    break
                run.strike(point)
                if len(tally.stories) >= findings_max:
                    break
            run.look_at_rows()
    tally.covered.update(scenes.covered)
    tally.covered.update(errors)
    tally.notes.append(f"{run}, seed {budget.seed}")
    return tally


def _deeds(stage: Stage, names: tuple[str, ...]) -> dict[str, Deed]:
    deeds = {**DEEDS, **{f"workflow {name}": stage.deed(life) for name, life in LIVES.items()}}
    return {name: deeds[name] for name in names} if names else deeds


class _Sweep:
    def __init__(
        self, way: Way, chance: random.Random, deeds: Mapping[str, Deed], scenes: Scenes, tally: Tally
    ) -> None:
        self._way = way
        self._chance = chance
        self._deeds = deeds
        self._scenes = scenes
        self._tally = tally
        self._sites: Counter[str] = Counter()
        self._counts: dict[str, int] = {}
        self._number = 0

    def __str__(self) -> str:
        return (
            f"{self._number:,} of {sum(self._counts.values()) * len(self._way.losses):,} points of {len(self._counts)} "
            f"deeds, {len(self._sites)} kinds of commits"
        )

    def points(self, rounds: int) -> Iterator[Point]:
        """Draw the points of each round. The deeds take turns, so that each comes soon; the commits of a deed are
        counted when it comes for the first time."""
        for _ in range(rounds):
            order = list(self._deeds)
            self._chance.shuffle(order)
            left = {name: self._points_of(name) for name in order}
            while left:
                for name in list(left):
                    point = next(left[name], None)
                    if point is None:
                        del left[name]
                    else:
                        yield point

    def _points_of(self, name: str) -> Iterator[Point]:
        if name not in self._counts:
            self._counts[name] = self._count(self._deeds[name])
        points = list(itertools.product(self._way.losses, range(1, self._counts[name] + 1)))
        self._chance.shuffle(points)
        for loss, k in points:
            yield Point(name, loss, k)

    def _count(self, deed: Deed) -> int:
        """Return how many commits a deed has."""
        harness = self._scenes.current
        subject = deed.prepare(harness)
        self._way.set_trap(0, self._way.losses[0])
        deed.act(harness, subject)
        count = len(self._way.take_trap())
        settle(harness, deed, subject)
        return count

    def strike(self, point: Point) -> None:
        """Inject, let others go on, and tell what is wrong."""
        self._number += 1
        found: list[Finding] = []
        try:
            found += self._struck(point)
        except Exception as error:
            found.append(("wrong", f"{type(error).__name__}: {error}"))
        finally:
            self._way.deliver()
        self._tell(point, found)
        if found or self._number % _SCENE_DEEDS == 0:
            self.look_at_rows()
            self._scenes.renew()

    def look_at_rows(self) -> None:
        """Check the invariants of rows."""
        harness = self._scenes.current
        self._tell("at the end", [("wrong", f"verify: {one}") for one in row_violations(harness.store, harness.url)])

    def _struck(self, point: Point) -> Iterator[Finding]:
        harness, deed = self._scenes.current, self._deeds[point.deed]
        subject = deed.prepare(harness)
        self._way.set_trap(point.k, point.loss)
        told: Exception | None = None
        try:
            deed.act(harness, subject)
        except (DatabaseUnreachable, OutcomeUnknown) as error:
            told = error
        sites = self._way.take_trap()
        if len(sites) < point.k:
            if told is not None:
                raise told
        else:
            self._tally.injected[point.loss] += 1
            self._tally.covered.update(fault_points(point.loss))
            self._tally.covered.update(error_points(told))
            self._sites[sites[-1]] += 1
        if point.loss == CRASH:
            _turn_clock_again(harness)
        if point.loss == HALF_OPEN and (self._way.is_late_in_transaction or self._chance.random() < 0.5):
            self._way.deliver()
        if told is not None:
            # What happens to a workflow from outside comes later: a signal would be early while its lease is held.
            at_once = deed.recover if point.deed in DEEDS else work
            self._insist(lambda: at_once(harness, subject))
        if point.loss == HALF_OPEN:
            # A write that arrives when the lease has expired and another worker has gone on.
            harness.clock.advance(deed.pause)
            deed.recover(harness, subject)
            self._way.deliver()
        settle(harness, deed, subject)
        yield from deed.look(harness, subject)

    def _insist(self, act: Callable[[], object]) -> None:
        """Repeat it until there is no outage any more."""
        for _ in range(_TRIES_MAX - 1):
            try:
                act()
            except OUTAGES as error:
                self._tally.covered.update(error_points(error))
            else:
                return
        act()

    def _tell(self, point: Point | str, found: list[Finding]) -> None:
        for kind, text in found:
            setattr(self._tally, kind, getattr(self._tally, kind) + 1)
            self._tally.stories.append(f"{point}: {text}")


def _turn_clock_again(harness: Harness) -> None:
    """Give the clock of the test a new connection, since it has lost its own with the server."""
    clock: Any = harness.clock
    assert isinstance(clock, TableClock)
    clock._connection.close()
    clock._connection = connection = plain_connection(harness.url)
    connection.autocommit = True
    harness._exits.enter_context(closing(connection))
