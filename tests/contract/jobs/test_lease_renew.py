"""lease_renew: many leases at once; what it tells, and whom it refuses."""

from __future__ import annotations

from datetime import timedelta

from detent.model.records import Cancelled, Finished, Renewal
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, claim, claim_one, enqueue, finish, job
from tests.contract.refusals import Untouched


def test_the_lease_is_extended_from_now(store: Store, clock: StoreClock) -> None:
    """J5: by the database's clock; the holder stays the holder."""
    job_id = enqueue(store)
    lease_id = store.ids_reserve(1)
    held = claim_one(store, lease_id=lease_id)
    clock.advance(LEASE - 1)
    assert store.lease_renew([lease_id], 50.0) == [Renewal(lease_id, True)]
    (execution,) = store.job_executions(job_id)
    assert execution.expires_at == clock.now() + timedelta(seconds=50)
    clock.advance(49)
    assert store.lease_reap(10).leases == 0
    assert finish(store, held) == Finished(job_id, 1)


def test_an_expired_lease_that_nobody_has_reaped_may_be_renewed(store: Store, clock: StoreClock) -> None:
    """Lost means reaped for renew, and nothing else."""
    job_id = enqueue(store)
    lease_id = store.ids_reserve(1)
    held = claim_one(store, lease_id=lease_id)
    clock.advance(LEASE * 10)
    assert store.lease_renew([lease_id], LEASE) == [Renewal(lease_id, True)]
    assert store.lease_reap(10).leases == 0
    assert finish(store, held) == Finished(job_id, 1)


def test_a_reaped_lease_is_refused(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """G3: and the job stays where the reaper put it, also where `begun` names it."""
    job_id = enqueue(store)
    lease_id = store.ids_reserve(1)
    claim_one(store, lease_id=lease_id)
    clock.advance(LEASE + 1)
    store.lease_reap(10)
    with untouched():
        assert store.lease_renew([lease_id], LEASE, {job_id: 0.5}) == [Renewal(lease_id, False)]
    claim_one(store, worker="bob")
    with untouched():
        assert store.lease_renew([lease_id], LEASE, {job_id: 0.5}) == [Renewal(lease_id, False)]


def test_many_leases_at_once(store: Store, clock: StoreClock) -> None:
    """J5: workers renew in bulk; answers come in the order asked."""
    for _ in range(2):
        enqueue(store)
    first, second, never = (store.ids_reserve(1) for _ in range(3))
    claim(store, lease_id=first, limit=1)
    claim(store, lease_id=second, limit=1)
    answers = store.lease_renew([second, never, first], LEASE)
    assert answers == [Renewal(second, True), Renewal(never, False), Renewal(first, True)]
    assert store.lease_renew([], LEASE) == []


def test_it_tells_who_is_to_be_stopped(store: Store) -> None:
    """J8: a running job is told through its next heartbeat."""
    for _ in range(3):
        enqueue(store)
    lease_id = store.ids_reserve(1)
    first, second, third = (held.job_id for held in claim(store, lease_id=lease_id))
    assert store.job_cancel([first, third], "ana", "wrong list") == [
        Cancelled(first, "running"),
        Cancelled(third, "running"),
    ]
    (renewal,) = store.lease_renew([lease_id], LEASE)
    assert (renewal.held, sorted(renewal.cancel_requested)) == (True, [(first, 1), (third, 1)])
    assert job(store, second).cancel_requested_at is None


def test_it_puts_the_begun_in_progress(store: Store, clock: StoreClock) -> None:
    """The start is folded into the renewal that follows it; only jobs under these leases count. It is the time at which
    the function was called, though the renewal comes later."""
    for _ in range(3):
        enqueue(store)
    lease_id, other = store.ids_reserve(1), store.ids_reserve(1)
    begun, resting = (held.job_id for held in claim(store, lease_id=lease_id, limit=2))
    foreign = claim_one(store, lease_id=other).job_id
    claimed_at = clock.now()
    clock.advance(1)
    store.lease_renew([lease_id], LEASE, {begun: 0.25, foreign: 0.25})
    clock.advance(1)
    store.lease_renew([lease_id], LEASE, {begun: 0.5})
    assert job(store, begun).started_at == claimed_at + timedelta(seconds=0.25)
    assert job(store, resting).started_at is None
    assert job(store, foreign).started_at is None
