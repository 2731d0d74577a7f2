"""lease_reap_each: a job that cannot be ended keeps no other job from being taken over."""

from __future__ import annotations

from detent.model.records import Reaped
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.damaged_rows import ended_twice
from tests.contract.jobs.sample_jobs import LEASE, claim, commit, enqueue, state
from tests.contract.refusals import Untouched


def test_without_damage_it_does_what_lease_reap_does(store: Store, clock: StoreClock) -> None:
    """J6, C6"""
    lost, committed = enqueue(store), enqueue(store)
    held = claim(store)
    store.job_commit(commit(held[1], result="1"))
    clock.advance(LEASE + 1)
    assert store.lease_reap_each(10, []) == Reaped(leases=1, aborted=(lost,), recovered=(committed,))
    assert (state(store, lost), state(store, committed)) == ("pending", "succeeded")
    assert [one.counted for one in store.job_executions(lost)] == [False]


def test_a_job_that_cannot_be_ended_harms_itself_only(store: Store, store_url: str, clock: StoreClock) -> None:
    """J6, R3: the other jobs of its lease and of other leases are taken over; it stays, and is reported."""
    ids = [enqueue(store) for _ in range(4)]
    for _ in range(2):
        claim(store, limit=2)
    clock.advance(LEASE + 1)
    with ended_twice(store_url, ids[0]):
        reaped = store.lease_reap_each(10, [])
        assert (reaped.leases, reaped.aborted) == (1, tuple(ids[1:]))
        (bad,) = reaped.bad
        assert (bad.entity, bad.entity_id) == ("job", str(ids[0]))
        assert bad.cause
        assert store.lease_reap_each(10, [bad.skip_id]) == Reaped()
    assert store.lease_reap_each(10, []) == Reaped(leases=1, aborted=(ids[0],))


def test_a_living_lease_is_left_alone(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """J5"""
    enqueue(store)
    claim(store)
    clock.advance(LEASE - 0.000001)
    with untouched():
        assert store.lease_reap_each(10, []) == Reaped()
