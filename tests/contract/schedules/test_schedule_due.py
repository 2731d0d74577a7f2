"""schedule_due: whose tick has come."""

from __future__ import annotations

from datetime import timedelta

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.schedules.sample_schedules import FIRST, schedule


def test_the_longest_due_first_and_no_more_than_asked(store: Store, clock: StoreClock) -> None:
    """J11"""
    for name, minutes in (("late", 2), ("early", 0), ("later", 3), ("same", 0)):
        store.schedule_put(schedule(name, next_at=FIRST + timedelta(minutes=minutes)))
    clock.set(FIRST - timedelta(microseconds=1))
    assert store.schedule_due(10) == []
    clock.set(FIRST + timedelta(minutes=2))
    assert [row.name for row in store.schedule_due(10)] == ["early", "same", "late"]
    assert [row.name for row in store.schedule_due(1)] == ["early"]
