"""schedule_fire: each tick once, whoever comes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from threading import Barrier

import pytest

from detent.errors import IdConflict
from detent.model.service_records import Fire
from detent.store.contract import Store
from detent.store.jobs.filters import JobSearch
from detent.testing.stores import StoreClock, another_store
from tests.contract.concurrent_callers import PATIENCE
from tests.contract.jobs.sample_jobs import enqueue, job, new_job
from tests.contract.refusals import Untouched
from tests.contract.schedules.sample_schedules import FIRST, schedule

SECOND = FIRST + timedelta(hours=1)
THIRD = FIRST + timedelta(hours=2)


def test_jobs_and_the_next_tick_come_together(store: Store, clock: StoreClock) -> None:
    """J11: a tick passed over is dealt with, and makes no job."""
    store.schedule_put(schedule())
    clock.set(SECOND)
    item = new_job(store, due_at=SECOND)
    assert store.schedule_fire("nightly", FIRST, [Fire(FIRST, None), Fire(SECOND, item)], THIRD) == [item.id]
    assert job(store, item.id).due_at == SECOND
    (row,) = store.schedule_list()
    assert (row.last_at, row.next_at) == (SECOND, THIRD)


def test_who_believes_an_old_tick_gets_nothing(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    store.schedule_put(schedule())
    store.schedule_fire("nightly", FIRST, [Fire(FIRST, new_job(store))], SECOND)
    late = new_job(store)
    with untouched():
        assert store.schedule_fire("nightly", FIRST, [Fire(FIRST, late)], SECOND) is None
        assert store.schedule_fire("nobody", FIRST, [Fire(FIRST, late)], SECOND) is None


def test_a_tick_is_never_dealt_with_twice(store: Store, clock: StoreClock) -> None:
    """P-03 of other systems: not even where somebody set the schedule back."""
    store.schedule_put(schedule())
    first = new_job(store)
    assert store.schedule_fire("nightly", FIRST, [Fire(FIRST, first)], SECOND) == [first.id]
    store.schedule_put(schedule(cron="0 */1 * * *", next_at=FIRST))
    again, fresh = new_job(store), new_job(store)
    assert store.schedule_fire("nightly", FIRST, [Fire(FIRST, again), Fire(SECOND, fresh)], THIRD) == [fresh.id]
    assert store.job_get([again.id]) == [None]


def test_a_refused_job_refuses_the_tick(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    store.schedule_put(schedule())
    taken = new_job(store, id=enqueue(store), payload="{}")
    with untouched(), pytest.raises(IdConflict):
        store.schedule_fire("nightly", FIRST, [Fire(FIRST, taken)], SECOND)


def test_of_many_schedulers_one_fires(store: Store, store_url: str, clock: StoreClock) -> None:
    """J11: exactly once per tick, with any number of schedulers."""
    store.schedule_put(schedule())
    clock.set(SECOND)
    together = Barrier(4)

    def fire(_: int) -> list[int] | None:
        with closing(another_store(store_url, clock)) as elsewhere:
            item = new_job(elsewhere)
            together.wait(PATIENCE)
            return elsewhere.schedule_fire("nightly", FIRST, [Fire(FIRST, item)], SECOND)

    with ThreadPoolExecutor(4) as schedulers:
        fired = [ids for ids in schedulers.map(fire, range(4)) if ids is not None]
    assert [row.id for row in store.job_list(JobSearch()).rows] == fired[0]
    assert len(fired) == 1
