"""The layout of a diagram: positions of states, arrows and labels. Pure geometry, deterministic for each lifecycle.

States are placed in columns by their distance from the initial state. Each arrow is tried with several bends, and each
label at several places along its arrow; the combination that covers the least is used. Covered space is kept as cells
of a coarse grid, so that a try costs a few set operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import dist, hypot
from typing import NamedTuple, TypeAlias

from detent.lifecycle.definition import Lifecycle, Pair

__all__ = ["LINE", "Arrow", "Box", "Curve", "Layout", "Point", "lay_out"]

LINE = 14.0
"""Height of one line of a label."""

_CELL = 10.0
_BOX_HEIGHT = 46.0
_ROW = 132.0
_COLUMN_GAP = 96.0
_BENDS = (0, 50, -50, 80, -80, 130, -130, 190, -190, 260, -260, 340, -340, 430, -430, 530, -530)
_PLACES = (0.5, 0.43, 0.57, 0.36, 0.64, 0.29, 0.71, 0.22, 0.78)
_ROUNDS = 3

Cell: TypeAlias = tuple[int, int]


class Point(NamedTuple):
    """A point of the diagram; y grows downwards."""

    x: float
    y: float


class Box(NamedTuple):
    """A rectangle around its centre."""

    x: float
    y: float
    width: float
    height: float

    def holds(self, point: Point, margin: float = 0.0) -> bool:
        """Whether the point is inside, or at most the margin outside."""
        across, down = abs(point.x - self.x), abs(point.y - self.y)
        return across <= self.width / 2 + margin and down <= self.height / 2 + margin

    def cells(self, margin: float = 0.0) -> frozenset[Cell]:
        """Return the cells of the grid that it covers."""
        left, right = (int((self.x + side * (self.width / 2 + margin)) // _CELL) for side in (-1, 1))
        top, bottom = (int((self.y + side * (self.height / 2 + margin)) // _CELL) for side in (-1, 1))
        return frozenset((x, y) for x in range(left, right + 1) for y in range(top, bottom + 1))


class Curve(NamedTuple):
    """A quadratic Bézier curve."""

    start: Point
    control: Point
    end: Point

    def at(self, t: float) -> Point:
        """Return the point at t, from 0 at the start to 1 at the end."""
        a, b, c = (1 - t) ** 2, 2 * t * (1 - t), t**2
        return Point(
            a * self.start.x + b * self.control.x + c * self.end.x,
            a * self.start.y + b * self.control.y + c * self.end.y,
        )

    def between(self, t: float, u: float) -> Curve:
        """Return the part from t to u."""
        a, b, c = (1 - t) * (1 - u), t * (1 - u) + u * (1 - t), t * u
        control = Point(
            a * self.start.x + b * self.control.x + c * self.end.x,
            a * self.start.y + b * self.control.y + c * self.end.y,
        )
        return Curve(self.at(t), control, self.at(u))

    def points(self) -> list[Point]:
        """Return points along the curve, close enough to touch every cell on the way."""
        length = dist(self.start, self.control) + dist(self.control, self.end)
        count = max(2, int(length / (_CELL * 0.6)))
        return [self.at(i / count) for i in range(count + 1)]


@dataclass(frozen=True, slots=True)
class Arrow:
    """One pair of states with all its triggers: its curve and the box of its label."""

    pair: Pair
    triggers: tuple[str, ...]
    curve: Curve
    label: Box
    path: frozenset[Cell]
    words: frozenset[Cell]


@dataclass(frozen=True, slots=True)
class Layout:
    """The positions of everything; `frame` surrounds all of it."""

    boxes: dict[str, Box]
    arrows: tuple[Arrow, ...]
    frame: Box


@lru_cache(maxsize=64)
def lay_out(lifecycle: Lifecycle) -> Layout:
    """Place every state and every pair of the lifecycle. No two boxes overlap."""
    triggers = {pair: tuple(t.trigger for t in lifecycle.between(*pair)) for pair in lifecycle.pairs}
    boxes = _boxes(lifecycle, {pair: _words(names).width for pair, names in triggers.items()})
    order = sorted(triggers, key=lambda pair: dist(boxes[pair[0]][:2], boxes[pair[1]][:2]))
    solid = frozenset[Cell]().union(*(box.cells(8) for box in boxes.values()))
    placed: dict[Pair, Arrow] = {}
    for _ in range(_ROUNDS):
        for pair in order:
            others = [arrow for arrow in placed.values() if arrow.pair != pair]
            placed[pair] = _best(pair, triggers[pair], boxes, solid, others)
    arrows = tuple(placed[pair] for pair in lifecycle.pairs)
    return Layout(boxes, arrows, _frame(boxes, arrows))


def _ranks(lifecycle: Lifecycle) -> dict[str, int]:
    """Return the steps from the initial state: along the ordinary path first, then along logged transitions."""
    ranks = {lifecycle.initial: 0}
    for records in (("execution",), ("execution", "log")):
        queue = sorted(ranks, key=ranks.__getitem__)
        for state in queue:
            for t in lifecycle.transitions:
                if t.source == state and t.record in records and t.target not in ranks:
                    ranks[t.target] = ranks[state] + 1
                    queue.append(t.target)
    return ranks


def _boxes(lifecycle: Lifecycle, labels: dict[Pair, float]) -> dict[str, Box]:
    """Return the boxes in columns, with space between columns for the labels of the arrows."""
    ranks = _ranks(lifecycle)
    boxes: dict[str, Box] = {}
    left = 0.0
    for rank in range(max(ranks.values()) + 1):
        column = [state for state in lifecycle.states if ranks[state] == rank]
        width = max(max(112.0, 8.4 * len(state) + 36) for state in column)
        for row, state in enumerate(column):
            boxes[state] = Box(left + width / 2, (row - (len(column) - 1) / 2) * _ROW, width, _BOX_HEIGHT)
        near = [size for pair, size in labels.items() if {ranks[state] for state in pair} == {rank, rank + 1}]
        left += width + max(_COLUMN_GAP, max(near, default=0.0) + 48)
    return boxes


def _words(triggers: tuple[str, ...]) -> Box:
    return Box(0, 0, 6.8 * max(map(len, triggers)) + 6, LINE * len(triggers) + 4)


def _best(
    pair: Pair, triggers: tuple[str, ...], boxes: dict[str, Box], solid: frozenset[Cell], others: list[Arrow]
) -> Arrow:
    """Return the best combination of bend and label place, given the arrows that are placed already."""
    source, target = boxes[pair[0]], boxes[pair[1]]
    foreign = frozenset[Cell]().union(*(box.cells(8) for state, box in boxes.items() if state not in pair))
    paths = frozenset[Cell]().union(*(arrow.path for arrow in others))
    words = frozenset[Cell]().union(*(arrow.words for arrow in others))
    size = _words(triggers)
    best: tuple[float, Arrow] | None = None
    for bend in _BENDS:
        curve = _bent(source, target, bend)
        path = frozenset((int(p.x // _CELL), int(p.y // _CELL)) for p in curve.points())
        base = 40 * len(path & foreign) + 4 * len(path & paths) + 12 * len(path & words) + abs(bend) / 24
        if best is not None and base >= best[0]:
            continue
        for place in _PLACES:
            middle = curve.at(place)
            label = Box(middle.x, middle.y, size.width, size.height)
            covered = label.cells(2)
            cost = base + 40 * len(covered & solid) + 30 * len(covered & words) + 8 * len(covered & paths)
            cost += 8 * abs(place - 0.5)
            if best is None or cost < best[0]:
                best = cost, Arrow(pair, triggers, curve, label, path, covered)
    assert best is not None
    return best[1]


def _bent(source: Box, target: Box, bend: float) -> Curve:
    """Return the curve from edge to edge; its control point is `bend` away from the straight line, to the left."""
    length = hypot(target.x - source.x, target.y - source.y)
    across = Point((target.y - source.y) / length, -(target.x - source.x) / length)
    control = Point((source.x + target.x) / 2 + bend * across.x, (source.y + target.y) / 2 + bend * across.y)
    whole = Curve(Point(source.x, source.y), control, Point(target.x, target.y))
    steps = [i / 200 for i in range(201)]
    leave = max((t for t in steps if t <= 0.5 and source.holds(whole.at(t), 3)), default=0.0)
    enter = min((t for t in steps if t >= 0.5 and target.holds(whole.at(t), 4)), default=1.0)
    return whole.between(leave, enter)


def _frame(boxes: dict[str, Box], arrows: tuple[Arrow, ...]) -> Box:
    points = [point for arrow in arrows for point in arrow.curve.points()]
    for box in [*boxes.values(), *(arrow.label for arrow in arrows)]:
        points.append(Point(box.x - box.width / 2, box.y - box.height / 2))
        points.append(Point(box.x + box.width / 2, box.y + box.height / 2))
    left, right = min(p.x for p in points), max(p.x for p in points)
    top, bottom = min(p.y for p in points), max(p.y for p in points)
    return Box((left + right) / 2, (top + bottom) / 2, right - left, bottom - top)
