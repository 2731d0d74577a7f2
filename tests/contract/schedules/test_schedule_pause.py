"""schedule_pause: no tick comes until it is resumed."""

from __future__ import annotations

from detent.errors import NotFound
from detent.model.records import Moved
from detent.model.service_records import Fire
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import new_job
from tests.contract.refusals import Untouched, refused
from tests.contract.schedules.sample_schedules import FIRST, line, schedule


def test_it_is_not_due_and_does_not_fire(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """J11: not even by a scheduler that had seen it before."""
    store.schedule_put(schedule())
    assert store.schedule_pause("nightly", "ana", "quiet week") == Moved("nightly", "paused", True)
    clock.set(FIRST)
    assert store.schedule_due(10) == []
    job = new_job(store)
    with untouched():
        assert store.schedule_fire("nightly", FIRST, [Fire(FIRST, job)], FIRST.replace(hour=2)) is None
    (row,) = store.schedule_list()
    assert (row.paused_by, row.reason) == ("ana", "quiet week")
    assert line(store)[-1] == ("active", "paused", "pause", "ana", "quiet week")


def test_pausing_a_paused_one_changes_nothing(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """L3"""
    store.schedule_put(schedule())
    store.schedule_pause("nightly", "ana")
    clock.advance(1)
    with untouched():
        assert store.schedule_pause("nightly", "bob") == Moved("nightly", "paused", False)
        refused(store.schedule_pause("nobody", "ana"), NotFound, entity="schedule", entity_id="nobody")
