"""schedule_remove: no tick of it comes any more."""

from __future__ import annotations

from detent.errors import NotFound
from detent.model.records import Moved
from detent.model.service_records import Fire
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import new_job, state
from tests.contract.refusals import Untouched, refused
from tests.contract.schedules.sample_schedules import FIRST, line, schedule


def test_it_goes_with_its_ticks_and_its_jobs_stay(store: Store) -> None:
    """J11"""
    store.schedule_put(schedule())
    job = new_job(store)
    store.schedule_fire("nightly", FIRST, [Fire(FIRST, job)], FIRST.replace(hour=2))
    assert store.schedule_remove("nightly", "ana", "moved elsewhere") == Moved("nightly", "removed", True)
    assert store.schedule_list() == []
    assert state(store, job.id) == "pending"
    assert line(store)[-1] == ("active", "removed", "remove", "ana", "moved elsewhere")


def test_one_that_is_not_there(store: Store, untouched: Untouched) -> None:
    with untouched():
        refused(store.schedule_remove("nobody", "ana"), NotFound, entity="schedule", entity_id="nobody")
