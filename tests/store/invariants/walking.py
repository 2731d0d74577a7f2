"""A walk along the whole record, from its newest jobs to its last queue row."""

from __future__ import annotations

from detent.model.records import Violation
from detent.model.service_records import WalkPlace
from detent.store.contract import Store

__all__ = ["STEPS_MAX", "walked"]

STEPS_MAX = 1000


def walked(store: Store, rows_max: int) -> list[Violation]:
    """What all its steps find; a walk that does not end is an error."""
    found: list[Violation] = []
    place: WalkPlace | None = WalkPlace()
    for _ in range(STEPS_MAX):
        if place is None:
            return found
        step = store.verify_step(place, rows_max)
        found += step.violations
        place = step.then
    raise AssertionError(f"the walk is still at {place} after {STEPS_MAX} steps")
