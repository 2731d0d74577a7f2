"""schedule_run: a schedule's job out of turn, on record."""

from __future__ import annotations

from detent.errors import NotFound
from detent.model.records import Enqueued
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import new_job, state
from tests.contract.refusals import Untouched, refused
from tests.contract.schedules.sample_schedules import FIRST, line, schedule


def test_the_job_and_its_line_come_together_and_the_ticks_stay(store: Store) -> None:
    store.schedule_put(schedule())
    store.schedule_pause("nightly", "ana")
    item = new_job(store)
    assert store.schedule_run("nightly", item, "ben", "a customer waits") == Enqueued(item.id, True)
    assert state(store, item.id) == "pending"
    (row,) = store.schedule_list()
    assert (row.next_at, row.last_at, row.paused_by) == (FIRST, None, "ana")
    assert line(store)[-1] == ("paused", "paused", "run_now", "ben", "a customer waits")


def test_an_equal_job_that_waits_stands_for_it(store: Store) -> None:
    store.schedule_put(schedule())
    first, second = (new_job(store, key="u", unique_pending=True) for _ in range(2))
    assert store.schedule_run("nightly", first, "ana") == Enqueued(first.id, True)
    assert store.schedule_run("nightly", second, "ana") == Enqueued(first.id, False)


def test_no_such_schedule(store: Store, untouched: Untouched) -> None:
    item = new_job(store)
    with untouched():
        refused(store.schedule_run("hourly", item, "ana"), NotFound)
