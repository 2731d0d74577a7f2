"""job_expire_each: a row that cannot be expired keeps no other job from expiring."""

from __future__ import annotations

from datetime import timedelta

from detent.model.records import EachDone
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.damaged_rows import offered_again
from tests.contract.jobs.sample_jobs import enqueue, state, succeeded
from tests.contract.refusals import Untouched


def test_ready_and_waiting_jobs_expire_in_the_order_of_expiry(store: Store, clock: StoreClock) -> None:
    """J12"""
    soon = clock.now() + timedelta(seconds=5)
    waits = enqueue(store, due_at=clock.now() + timedelta(hours=1), expires_at=soon + timedelta(seconds=1))
    ready, later = enqueue(store, expires_at=soon), enqueue(store, expires_at=clock.now() + timedelta(hours=1))
    clock.advance(10)
    assert store.job_expire_each(10, []) == EachDone((ready, waits))
    assert [state(store, one) for one in (ready, waits, later)] == ["cancelled", "cancelled", "pending"]


def test_a_row_of_a_job_that_is_not_pending_harms_itself_only(store: Store, store_url: str, clock: StoreClock) -> None:
    """J12, R3: it stays as it is and is reported; left out, nothing is reported."""
    done = succeeded(store)
    ids = [enqueue(store, expires_at=clock.now() + timedelta(seconds=5)) for _ in range(2)]
    clock.advance(10)
    with offered_again(store_url, done):
        expired = store.job_expire_each(10, [])
        assert expired.done == tuple(ids)
        (bad,) = expired.bad
        assert (bad.entity, bad.entity_id, bad.skip_id) == ("job", str(done), done)
        assert "succeeded" in bad.cause
        assert store.job_expire_each(10, [done]) == EachDone()
    assert state(store, done) == "succeeded"


def test_what_has_not_expired_is_left_alone(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """J12"""
    enqueue(store, expires_at=clock.now() + timedelta(hours=1))
    with untouched():
        assert store.job_expire_each(10, []) == EachDone()
