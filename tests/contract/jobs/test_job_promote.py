"""job_promote: what has come due moves from waiting to ready."""

from __future__ import annotations

from datetime import timedelta

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, enqueue, job
from tests.contract.refusals import Untouched


def test_what_is_due_becomes_claimable(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """J2: run-at: not before its time, and then in the order of its times."""
    later, sooner, tomorrow = (
        enqueue(store, due_at=clock.now() + timedelta(seconds=seconds)) for seconds in (20, 10, 86400)
    )
    with untouched():
        assert store.job_promote(10) == 0
    clock.advance(9.999999)
    assert store.job_promote(10) == 0
    clock.advance(10.000001)
    assert store.job_promote(10) == 2
    assert [held.job_id for held in claim(store)] == [sooner, later]
    assert job(store, tomorrow).state == "pending"


def test_at_the_very_moment(store: Store, clock: StoreClock) -> None:
    enqueue(store, due_at=clock.now() + timedelta(seconds=1))
    clock.advance(1)
    assert store.job_promote(10) == 1


def test_in_portions_the_earliest_first(store: Store, clock: StoreClock) -> None:
    ids = [enqueue(store, due_at=clock.now() + timedelta(seconds=n)) for n in (3, 1, 2)]
    clock.advance(5)
    assert [store.job_promote(2), store.job_promote(2), store.job_promote(2)] == [2, 1, 0]
    assert [held.job_id for held in claim(store)] == [ids[1], ids[2], ids[0]]


def test_priority_and_tenant_survive_the_wait(store: Store, clock: StoreClock) -> None:
    due = clock.now() + timedelta(seconds=1)
    low, high = enqueue(store, due_at=due, tenant="a"), enqueue(store, due_at=due, tenant="a", priority=3)
    other = enqueue(store, due_at=due, tenant="b")
    clock.advance(1)
    store.job_promote(10)
    assert [held.job_id for held in claim(store)] == [high, other, low]


def test_a_retry_after_backoff_is_promoted_too(store: Store, clock: StoreClock) -> None:
    """J9"""
    enqueue(store)
    abort(store, claim_one(store), delay=2.0)
    clock.advance(2)
    assert store.job_promote(10) == 1
    assert claim_one(store).attempt == 2
