"""Splitting a range of numbers into partitions with about equal numbers of records."""

from __future__ import annotations

import heapq
import inspect
import math
from collections.abc import Callable, Coroutine, Generator
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

from detent.errors import InvalidInput

if TYPE_CHECKING:
    from detent.declare.pipeline import Partition

__all__ = ["split_by_count"]

N = TypeVar("N", int, float)


class _Piece(NamedTuple):
    """A range with its number of records; the fullest comes first in a heap."""

    minus_count: int
    low: float
    high: float


@overload
def split_by_count(
    count: Callable[[N, N], Coroutine[Any, Any, int]], low: N, high: N, *, parts: int = 30, probes_max: int = 200
) -> Coroutine[Any, Any, list[Partition]]: ...


@overload
def split_by_count(
    count: Callable[[N, N], int], low: N, high: N, *, parts: int = 30, probes_max: int = 200
) -> list[Partition]: ...


def split_by_count(
    count: Callable[[N, N], Any], low: N, high: N, *, parts: int = 30, probes_max: int = 200
) -> list[Partition] | Coroutine[Any, Any, list[Partition]]:
    """Split the range from `low` to `high` (exclusive) into up to `parts` partitions with about equal numbers of
    records: `Partition(key="500-750", payload={"low": 500, "high": 750, "count": 4870})`.

    `count(low, high)` returns the number of records in a range. It is called at most `probes_max` times, each time for
    half of the fullest range. A range of whole numbers is never narrower than one. A range without records gives no
    partition. If `count` is async, write `await split_by_count(...)`. `InvalidInput`.
    """
    for field, value, least in (("parts", parts, 1), ("probes_max", probes_max, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InvalidInput(field, repr(value)[:80], f"a whole number from {least}")
    if not math.isfinite(low) or not math.isfinite(high) or low >= high:
        raise InvalidInput("low", f"{low!r} to {high!r}"[:80], "a range: low below high, both finite")
    ranges = _split(low, high, parts, probes_max)
    if inspect.iscoroutinefunction(count):
        return _count_async(ranges, count)
    return _count(ranges, count)


_Ranges = Generator[tuple[float, float], int, list["Partition"]]
"""Yields ranges, receives their counts, and returns the partitions."""


def _count(ranges: _Ranges, count: Callable[[Any, Any], Any]) -> list[Partition]:
    asked = next(ranges)
    while True:
        answer = _checked(count(*asked), *asked)
        try:
            asked = ranges.send(answer)
        except StopIteration as end:
            return _partitions(end)


async def _count_async(ranges: _Ranges, count: Callable[[Any, Any], Any]) -> list[Partition]:
    asked = next(ranges)
    while True:
        answer = _checked(await count(*asked), *asked)
        try:
            asked = ranges.send(answer)
        except StopIteration as end:
            return _partitions(end)


def _partitions(end: StopIteration) -> list[Partition]:
    partitions: list[Partition] = end.value
    return partitions


def _split(low: float, high: float, parts: int, probes_max: int) -> _Ranges:
    from detent.declare.pipeline import Partition

    total = yield low, high
    if not total:
        return []
    pieces = yield from _halved(_Piece(-total, low, high), parts, probes_max - 1)
    return [
        Partition(f"{start}-{end}", {"low": start, "high": end, "count": records})
        for start, end, records in _grouped(pieces, parts)
    ]


def _halved(whole: _Piece, parts: int, probes: int) -> Generator[tuple[float, float], int, list[_Piece]]:
    """Return the range in pieces: the largest is halved until none has more than half of a fair share."""
    fair = -whole.minus_count / parts / 2
    open_: list[_Piece] = [whole]
    closed: list[_Piece] = []
    while open_ and probes > 0:
        largest = heapq.heappop(open_)
        middle = _middle(largest.low, largest.high)
        if -largest.minus_count <= fair or not largest.low < middle < largest.high:
            closed.append(largest)
            continue
        probes -= 1
        found = yield largest.low, middle
        left = min(found, -largest.minus_count)
        heapq.heappush(open_, _Piece(-left, largest.low, middle))
        heapq.heappush(open_, _Piece(largest.minus_count + left, middle, largest.high))
    return sorted((*open_, *closed), key=lambda piece: piece.low)


def _grouped(pieces: list[_Piece], parts: int) -> list[tuple[float, float, int]]:
    """Group neighbouring pieces into about fair shares. A group without records joins its neighbour."""
    fair = sum(-piece.minus_count for piece in pieces) / parts
    placed: list[tuple[int, _Piece]] = []
    before = 0
    for piece in pieces:
        middle = before + -piece.minus_count / 2
        placed.append((min(parts - 1, int(middle / fair)), piece))
        before += -piece.minus_count
    groups = []
    for _, together in groupby(placed, key=lambda one: one[0]):
        found = [piece for _, piece in together]
        groups.append((found[0].low, found[-1].high, sum(-piece.minus_count for piece in found)))
    joined: list[tuple[float, float, int]] = []
    for low, high, count in groups:
        if joined and (not count or not joined[-1][2]):
            before_low, _, before_count = joined.pop()
            joined.append((before_low, high, before_count + count))
        else:
            joined.append((low, high, count))
    return joined


def _middle(low: float, high: float) -> float:
    return (low + high) // 2 if isinstance(low, int) and isinstance(high, int) else (low + high) / 2


def _checked(found: object, low: float, high: float) -> int:
    if inspect.iscoroutine(found):
        found.close()
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise InvalidInput(
            "count", f"{found!r} for {low!r} to {high!r}"[:120], "a function that returns a whole number"
        )
    return found
