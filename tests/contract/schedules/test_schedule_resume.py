"""schedule_resume: ticks come again, and those of the pause do not."""

from __future__ import annotations

from datetime import timedelta

from detent.errors import NotFound
from detent.model.records import Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.refusals import Untouched, refused
from tests.contract.schedules.sample_schedules import FIRST, line, schedule

LATER = FIRST + timedelta(hours=5)


def test_it_goes_on_where_it_is_told(store: Store, clock: StoreClock) -> None:
    """J11"""
    store.schedule_put(schedule())
    store.schedule_pause("nightly", "ana")
    clock.set(LATER - timedelta(minutes=1))
    assert store.schedule_resume("nightly", LATER, "bob", "over") == Moved("nightly", "active", True)
    assert store.schedule_due(10) == []
    clock.set(LATER)
    (row,) = store.schedule_due(10)
    assert (row.next_at, row.paused_at, row.paused_by, row.reason) == (LATER, None, None, None)
    assert line(store)[-1] == ("paused", "active", "resume", "bob", "over")


def test_an_active_one_stays_as_it_is(store: Store, untouched: Untouched) -> None:
    """L3"""
    store.schedule_put(schedule())
    with untouched():
        assert store.schedule_resume("nightly", LATER, "bob") == Moved("nightly", "active", False)
        refused(store.schedule_resume("nobody", LATER, "bob"), NotFound, entity="schedule", entity_id="nobody")
