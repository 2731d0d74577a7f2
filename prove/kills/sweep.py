"""Injects a fault at every statement of every deed, in an order drawn from the seed, and then at pairs of statements.

One injection: a process does the deed, and something happens to it at its k-th statement. In a pair, a second process
goes on when the lease has expired, and something happens to that too. Then others go on, and everything must have come
to its end, once.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from detent.testing.harness import Harness
from detent.testing.stores import row_violations
from prove.coverage import errors_counted, fault_points
from prove.figure import Budget, Tally
from prove.kills import jobs, runs
from prove.kills.deed import Deed, Finding, settle
from prove.kills.scene import Kind, Scenes, declare_deeds
from prove.trap import cut_at, killed_at, statements_of

__all__ = ["DEEDS", "FAULTS", "Fault", "Point", "Points", "sweep"]

DEEDS: Mapping[str, Deed] = {
    **jobs.JOBS,
    **jobs.AT_MOST,
    **jobs.KEYED,
    **jobs.SCHEDULES,
    **runs.BATCHES,
    **runs.PIPELINES,
    **runs.OPS,
}
Fault = Literal["SIGKILL", "backend terminated"]
FAULTS: Mapping[Kind, tuple[Fault, ...]] = {"sqlite": ("SIGKILL",), "postgres": ("SIGKILL", "backend terminated")}
_PAIRS_EACH = 3
"""While there are single points left, one of so many injections is a pair."""
_OFTEN = 50
"""A deed comes once more in each round for so many statements that it has."""
_SCENE_DEEDS = 60
_LOOKED_AT = 10
"""After one of so many faults the invariants of rows are checked at once, and not only at the end of the scene."""


@dataclass(frozen=True)
class Point:
    """A place for a fault: the k-th statement of a deed, and of those who go on after it if it is a pair."""

    deed: str
    fault: Fault
    after: bool
    k: int
    then: int = 0
    then_fault: Fault = "SIGKILL"

    def __str__(self) -> str:
        text = f"{self.deed!r}: {self.fault} {'after' if self.after else 'before'} statement {self.k}"
        return f"{text}, then {self.then_fault} at statement {self.then} of the next worker" if self.then else text


def sweep(
    budget: Budget,
    kind: Kind,
    deeds: Mapping[str, Deed] = DEEDS,
    *,
    prepare: Callable[[Harness], None] = declare_deeds,
    faults: tuple[Fault, ...] = (),
    sides: tuple[bool, ...] = (False, True),
    pairs: bool = True,
    most: int = 1_000_000,
    findings_max: int = 30,
) -> Tally:
    """Inject until the budget is spent, or at most so often, or until so much was found that more tells nothing new.
    Without pairs, stop when each point was drawn. `faults` are all that this database knows, unless given; `sides` says
    whether they strike before a statement (False), after it, or both."""
    tally = Tally()
    faults = faults or FAULTS[kind]
    with errors_counted() as errors, Scenes(kind, prepare) as scenes:
        chosen = Points(
            random.Random(budget.seed),
            deeds,
            faults,
            lambda name: _count(scenes.current, deeds[name]),
            lambda name: _count_recovery(scenes.current, deeds[name]),
            sides=sides,
            pairs=pairs,
        )
        number, broken = 0, False
        while not budget.is_spent and tally.injected.total() < most and len(tally.stories) < findings_max:
            point = chosen.next()
            if point is None:
                break
            number += 1
            harness = scenes.current
            found = _found(tally, harness, deeds[point.deed], point, look_at_rows=number % _LOOKED_AT == 0)
            if number % _SCENE_DEEDS == 0:
                found += _violations(harness)
            broken = _tell(tally, point, found)
            if broken or number % _SCENE_DEEDS == 0:
                scenes.renew()
        _tell(tally, "at the end", _violations(scenes.current))
    tally.covered.update(scenes.covered)
    tally.covered.update(errors)
    tally.notes.append(f"{chosen}, seed {budget.seed}")
    return tally


def inject(tally: Tally, harness: Harness, deed: Deed, point: Point, *, look_at_rows: bool) -> Iterator[Finding]:
    """Do the deed with the fault, let others go on, and tell what is wrong."""
    subject = deed.prepare(harness)
    place = f"{'after' if point.after else 'before'} a statement"
    if _strike(tally, point.fault, point.k, lambda: deed.act(harness, subject), after=point.after):
        tally.injected[f"{point.fault} {place}"] += 1
        tally.covered.update(fault_points(point.fault))
    if point.then:
        harness.clock.advance(deed.pause)
        if _strike(tally, point.then_fault, point.then, lambda: deed.recover(harness, subject), after=point.after):
            tally.injected[f"{point.then_fault} of the next worker too"] += 1
    if look_at_rows:
        yield from _violations(harness)
    settle(harness, deed, subject)
    yield from deed.look(harness, subject)


def _strike(tally: Tally, fault: Fault, k: int, act: Callable[[], object], *, after: bool) -> bool:
    if fault == "SIGKILL":
        return killed_at(k, act, after=after)
    return cut_at(k, act, after=after, points=tally.covered)


def _found(tally: Tally, harness: Harness, deed: Deed, point: Point, *, look_at_rows: bool) -> list[Finding]:
    """Inject, and tell what was found. An error that nobody expects is a finding too."""
    found: list[Finding] = []
    try:
        found += inject(tally, harness, deed, point, look_at_rows=look_at_rows)
    except Exception as error:
        found.append(("wrong", f"{type(error).__name__}: {error}"))
    return found


def _tell(tally: Tally, point: Point | str, found: list[Finding]) -> bool:
    for kind, text in found:
        setattr(tally, kind, getattr(tally, kind) + 1)
        tally.stories.append(f"{point}: {text}")
    return bool(found)


def _violations(harness: Harness) -> list[Finding]:
    return [("wrong", f"verify: {one}") for one in row_violations(harness.store, harness.url)]


class Points:
    """Draws points. The statements of a deed are counted when it is drawn for the first time. Each of its points is
    drawn once, and after that only pairs."""

    def __init__(
        self,
        chance: random.Random,
        names: Iterable[str],
        faults: tuple[Fault, ...],
        count: Callable[[str], int],
        count_recovery: Callable[[str], int],
        *,
        sides: tuple[bool, ...] = (False, True),
        pairs: bool = True,
    ) -> None:
        self._sides = sides
        self._pairs = pairs
        self._chance = chance
        self._names = tuple(names)
        self._faults = faults
        self._count = count
        self._count_recovery = count_recovery
        self._left: dict[str, list[Point]] = {}
        self._act: dict[str, int] = {}
        self._recover: dict[str, int] = {}
        self._order: list[str] = []

    def __str__(self) -> str:
        pointed = sum(map(len, self._left.values()))
        single = len(self._sides) * len(self._faults) * sum(self._act.values())
        rest = ", the others were pairs" if self._pairs else ""
        return f"{single - pointed:,} of {single:,} points of {len(self._act)} deeds{rest}"

    def next(self) -> Point | None:
        """Return the next point; None if there is none. Deeds with many statements come more often, and each comes
        soon."""
        while (point := self._drawn()) is None and any(map(self._has_more, self._names)):
            pass
        return point

    def _has_more(self, name: str) -> bool:
        return self._pairs or name not in self._act or bool(self._left[name])

    def _drawn(self) -> Point | None:
        if not self._order:
            names = [name for name in self._names if self._has_more(name)]
            self._order = [name for name in names for _ in range(1 + self._act.get(name, 0) // _OFTEN)]
            self._chance.shuffle(self._order)
        if not self._order:
            return None
        name = self._order.pop()
        if name not in self._act:
            self._act[name] = self._count(name)
            self._left[name] = [
                Point(name, fault, after, k)
                for fault, after, k in itertools.product(self._faults, self._sides, range(1, self._act[name] + 1))
            ]
            self._chance.shuffle(self._left[name])
        if self._left[name] and (not self._pairs or self._chance.randrange(_PAIRS_EACH)):
            return self._left[name].pop()
        if not self._pairs:
            return None
        if name not in self._recover:
            self._recover[name] = max(1, self._count_recovery(name))
        return Point(
            name,
            self._chance.choice(self._faults),
            self._chance.random() < 0.5 and True in self._sides,
            self._chance.randint(1, self._act[name]),
            self._chance.randint(1, self._recover[name]),
            self._chance.choice(self._faults),
        )


def _count(harness: Harness, deed: Deed) -> int:
    """Return how many statements a deed has."""
    subject = deed.prepare(harness)
    count = statements_of(lambda: deed.act(harness, subject))
    settle(harness, deed, subject)
    return count


def _count_recovery(harness: Harness, deed: Deed) -> int:
    """Return how many statements those have who go on after a process that died in the middle."""
    middle = max(1, _count(harness, deed) // 2)
    subject = deed.prepare(harness)
    killed_at(middle, lambda: deed.act(harness, subject), after=True)
    harness.clock.advance(deed.pause)
    count = statements_of(lambda: deed.recover(harness, subject))
    settle(harness, deed, subject)
    return count
