"""split_by_count: a range in partitions of about equal weight, by few questions."""

from __future__ import annotations

import asyncio
import random
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest

from detent import split_by_count
from detent.errors import InvalidInput


def counting(values: Sequence[float]) -> tuple[Callable[[Any, Any], int], list[int]]:
    """A function that counts what lies in a range, and how often it was asked."""
    ordered, asked = sorted(values), [0]

    def count(low: float, high: float) -> int:
        asked[0] += 1
        return bisect_left(ordered, high) - bisect_left(ordered, low)

    return count, asked


def test_lopsided_prices_are_balanced() -> None:
    """P6: most stones are cheap; thirty partitions of about equal weight, without gaps, by few questions."""
    chance = random.Random(1)
    prices = [min(999_999, int(chance.paretovariate(1.2) * 300)) for _ in range(50_000)]
    count, asked = counting(prices)
    parts = split_by_count(count, 0, 1_000_000, parts=30)
    weights = [part.payload["count"] for part in parts]
    assert sum(weights) == 50_000
    assert 20 <= len(parts) <= 30
    assert max(weights) <= 2 * 50_000 / 30
    assert asked[0] <= 200
    edges = [(part.payload["low"], part.payload["high"]) for part in parts]
    assert (edges[0][0], edges[-1][1]) == (0, 1_000_000)
    assert all(before[1] == after[0] for before, after in pairwise(edges))
    assert [part.key for part in parts] == [f"{low}-{high}" for low, high in edges]
    assert all(isinstance(edge, int) for pair in edges for edge in pair)


def test_one_price_for_all_cannot_be_split() -> None:
    """P6: a range of whole numbers is never narrower than one."""
    count, asked = counting([7] * 1000)
    (part,) = split_by_count(count, 0, 1000, parts=10)
    assert (part.payload["low"], part.payload["high"], part.payload["count"]) == (0, 1000, 1000)
    assert asked[0] < 30


def test_nothing_there_and_few_questions() -> None:
    """P6: no record, no partition; and no more questions than allowed."""
    count, asked = counting([])
    assert split_by_count(count, 0.0, 1.0) == []
    count, asked = counting([n / 1000 for n in range(1000)])
    parts = split_by_count(count, 0.0, 1.0, parts=4, probes_max=3)
    assert asked[0] == 3
    assert sum(part.payload["count"] for part in parts) == 1000


def test_a_count_that_is_awaited() -> None:
    """P6: the same questions, the same partitions."""
    count, asked = counting([n * n for n in range(500)])

    async def awaited(low: int, high: int) -> int:
        await asyncio.sleep(0)
        return count(low, high)

    async def split() -> object:
        return await split_by_count(awaited, 0, 250_000, parts=10)

    found, questions = asyncio.run(split()), asked[0]
    assert found == split_by_count(count, 0, 250_000, parts=10)
    assert asked[0] == 2 * questions


@pytest.mark.parametrize(
    "wrong",
    [
        {"low": 5, "high": 5},
        {"low": 0, "high": float("inf")},
        {"parts": 0},
        {"probes_max": 0},
        {"count": lambda low, high: -1},
        {"count": lambda low, high: "many"},
    ],
)
def test_what_cannot_be_split(wrong: dict[str, object]) -> None:
    """P6: refused with what would be allowed."""
    fields: dict[str, object] = {"count": lambda low, high: 1, "low": 0, "high": 10} | wrong
    with pytest.raises(InvalidInput):
        split_by_count(**fields)  # type: ignore[call-overload]
