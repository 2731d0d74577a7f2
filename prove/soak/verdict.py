"""Whether a soak was flat: no quantity grew after the warm-up by more than its tolerance.

A straight line is laid through the samples of a quantity: its slope is the median of the slopes between pairs of
samples (Theil and Sen), so peaks after a fault do not count. A quantity grows if its line rises by more than the
tolerance between the end of the warm-up and the end, and by more than a quarter of that in the second half of this
time. What only fills up to a level passes, and what grows without end does not.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prove.soak.programs import ISOLATED, STRUCK
from prove.soak.sampler import FIGURES

__all__ = ["FLAT", "Tolerance", "growth", "judge", "series", "slope", "warm_up"]

_WARM_UP, _WARM_UP_MIN, _WARM_UP_MAX = 0.25, 120.0, 0.5
_POINTS_MAX = 240
_SAMPLES_MIN = 12


@dataclass(frozen=True, slots=True)
class Tolerance:
    """By how much a quantity may grow in the judged part of a run: a share of its median, or an amount; the larger."""

    share: float
    amount: float


FLAT = {
    "memory of its own, MiB": Tolerance(0.08, 3.0),
    "open files": Tolerance(0.1, 4.0),
    "threads": Tolerance(0.1, 3.0),
    "connections": Tolerance(0.1, 3.0),
    "memory of backends, MiB": Tolerance(0.15, 12.0),
    "WAL, MiB": Tolerance(0.1, 8.0),
    "tables and indexes, MiB": Tolerance(0.1, 1.5),
}
"""The quantities that must be flat."""

Point = tuple[float, float]


def _is_judged(name: str) -> bool:
    """Return whether a line must be flat. Some processes come and go, and figures of the past are kept longer."""
    return not name.startswith(STRUCK) and ISOLATED not in name and name != FIGURES


def warm_up(seconds: float) -> float:
    """Return how much of a run is not judged: a quarter, but at least two minutes; half of a run shorter than that."""
    return max(_WARM_UP * seconds, min(_WARM_UP_MIN, _WARM_UP_MAX * seconds))


def series(samples: Sequence[dict[str, Any]], quantity: str) -> dict[str, list[Point]]:
    """Return the lines of a quantity: for each name its points of time and value."""
    found: dict[str, list[Point]] = {}
    for sample in samples:
        for name, value in sample["values"].get(quantity, {}).items():
            found.setdefault(name, []).append((sample["t"], value))
    return found


def slope(points: Sequence[Point]) -> float:
    """Return the median of the slopes between all pairs of points; of evenly drawn ones if there are many."""
    drawn = points[:: -(-len(points) // _POINTS_MAX)]
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for place, earlier in enumerate(drawn)
        for later in drawn[place + 1 :]
        if later[0] > earlier[0]
    ]
    return statistics.median(slopes) if slopes else 0.0


def growth(points: Sequence[Point]) -> float:
    """Return by how much a line through these points rises."""
    return slope(points) * (points[-1][0] - points[0][0]) if points else 0.0


def judge(samples: Sequence[dict[str, Any]], seconds: float) -> list[str]:
    """Return a sentence for each quantity that grew, and for each process that should have lived and did not."""
    found: list[str] = []
    begin = warm_up(seconds)
    middle = (begin + seconds) / 2
    for quantity, tolerance in FLAT.items():
        for name, points in series(samples, quantity).items():
            if not _is_judged(name):
                continue
            judged = [one for one in points if one[0] >= begin]
            if len(judged) < _SAMPLES_MIN:
                found.append(f"{quantity} ({name}): there are only {len(judged)} samples after the warm-up.")
                continue
            allowed = max(tolerance.amount, tolerance.share * statistics.median(value for _, value in judged))
            grown, late = growth(judged), growth([one for one in judged if one[0] >= middle])
            if grown > allowed and late > allowed / 4:
                found.append(
                    f"{quantity} ({name}) grew by {grown:.1f} in {(seconds - begin) / 60:.1f} minutes, of which "
                    f"{late:.1f} in the second half; {allowed:.1f} is tolerated.{_what_grew(quantity, samples, begin)}"
                )
    for name, points in series(samples, "process ids").items():
        if _is_judged(name) and len({pid for _, pid in points}) > 1:
            found.append(f"The process of {name} was replaced, although it was never struck.")
    return found


def _what_grew(quantity: str, samples: Sequence[dict[str, Any]], begin: float) -> str:
    """Name the tables or indexes that grew most."""
    sizes = [sample["largest"] for sample in samples if sample["t"] >= begin and sample.get("largest")]
    if not quantity.startswith("tables") or not sizes:
        return ""
    first, last = sizes[0], sizes[-1]
    grown = sorted(last, key=lambda name: first.get(name, 0.0) - last[name])[:3]
    return " Most in " + ", ".join(f"{name} ({last[name] - first.get(name, 0.0):+.1f})" for name in grown) + "."
