"""Points that a tier must reach: without them a clean table would prove nothing.

Figures count what they reach in `Tally.covered`. A point is a text such as "transition job: pending -> running",
"sqlstate 40001", "error LeaseLost" or "fault lost answer".
"""

from __future__ import annotations

from collections import Counter

from prove.figure import Tier

__all__ = ["REQUIRED", "missing_points"]

_TIMES: dict[Tier, int] = {"commit": 1, "nightly": 100, "release": 100}
"""How often each point must be reached."""
REQUIRED: dict[Tier, frozenset[str]] = {"commit": frozenset(), "nightly": frozenset(), "release": frozenset()}


def missing_points(covered: Counter[str], tier: Tier) -> dict[str, int]:
    """Return the points that were not reached often enough, and how often they were."""
    return {point: covered[point] for point in sorted(REQUIRED[tier]) if covered[point] < _TIMES[tier]}
