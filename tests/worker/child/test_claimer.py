"""How often a worker looks that is kept back by limits."""

from __future__ import annotations

import math

import pytest

from detent.worker.child.claimer import look_interval


@pytest.mark.parametrize(
    ("refill", "seconds"), [(math.inf, 1.0), (20.0, 1.0), (0.5, 0.25), (0.25, 0.125), (0.001, 0.05)]
)
def test_no_bucket_overflows_between_two_looks(refill: float, seconds: float) -> None:
    """B5: with two a second and room for one, a look a second would let half of them go to waste."""
    assert look_interval(refill) == pytest.approx(seconds)
