"""now: the database's clock, and no other."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta

from detent.store.contract import Store
from detent.store.open import open_store
from detent.testing.stores import START, StoreClock
from tests.contract.jobs.sample_jobs import enqueue, job


def test_it_is_the_clock_that_decides(store: Store, clock: StoreClock) -> None:
    """J5: aware, in UTC, to the microsecond."""
    assert store.now() == START
    clock.advance(timedelta(microseconds=1))
    assert store.now() == START + timedelta(microseconds=1)
    assert store.now().utcoffset() == timedelta(0)
    assert job(store, enqueue(store)).created_at == store.now()


def test_left_alone_it_is_the_time_of_the_world(database_url: str) -> None:
    with closing(open_store(database_url)) as store:
        store.ready()
        before = datetime.now(UTC)
        now = store.now()
        assert abs(now - before) < timedelta(minutes=5)
