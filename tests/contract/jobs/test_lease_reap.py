"""lease_reap: what a dead worker held is claimable again."""

from __future__ import annotations

import pytest

from detent.model.records import Abort, Reaped
from detent.store.contract import Store
from detent.testing.stores import StoreClock, dump
from tests.contract.jobs.sample_jobs import LEASE, claim, claim_one, commit, enqueue, finish, job, state
from tests.contract.refusals import Untouched


def test_an_expired_lease_gives_its_jobs_back(store: Store, clock: StoreClock) -> None:
    """J6: expired before commit: aborted, and back to pending at once, without backoff."""
    ids = [enqueue(store) for _ in range(3)]
    claim(store)
    clock.advance(LEASE)
    assert store.lease_reap(10) == Reaped(leases=1, aborted=tuple(ids), recovered=())
    for job_id in ids:
        row = job(store, job_id)
        assert (row.state, row.due_at, row.attempt, row.ended, row.spared) == ("pending", clock.now(), 1, 1, 1)
        (execution,) = store.job_executions(job_id)
        assert (execution.state, execution.outcome, execution.worker) == ("aborted", "expired", "ana")
        assert (execution.aborted_at, execution.counted, execution.next_state) == (clock.now(), False, "pending")
    assert [held.attempt for held in claim(store, worker="bob")] == [2, 2, 2]


def test_a_living_lease_is_left_alone(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """J5: expiry is the database's clock, to the microsecond."""
    enqueue(store)
    claim_one(store)
    clock.advance(LEASE - 0.000001)
    with untouched():
        assert store.lease_reap(10) == Reaped()


def expire_once(store: Store, clock: StoreClock) -> None:
    claim_one(store)
    clock.advance(LEASE + 1)
    store.lease_reap(10)


@pytest.mark.parametrize(("attempts_max", "ended_after"), [(1, 1), (2, 3), (3, 5), (10, 15)])
def test_a_job_that_kills_its_worker_again_and_again_ends(
    store: Store, clock: StoreClock, attempts_max: int, ended_after: int
) -> None:
    """J7, G6: an attempt that expired does not count, since its worker died or could not reach the database; but only
    five times, and fewer than attempts_max: then it comes to quarantine, not to an endless loop."""
    job_id = enqueue(store, attempts_max=attempts_max)
    for _ in range(ended_after):
        assert state(store, job_id) == "pending"
        expire_once(store, clock)
    assert state(store, job_id) == "quarantined"
    assert claim(store) == []
    spared = min(5, attempts_max - 1)
    assert [one.counted for one in store.job_executions(job_id)] == [False] * spared + [True] * attempts_max
    assert store.verify() == []


def test_what_expired_before_a_retry_is_not_spared_again(store: Store, clock: StoreClock) -> None:
    """G6: the five are for the life of the job, so that retrying poison does not take the machine down ten times."""
    job_id = enqueue(store, attempts_max=2)
    for _ in range(3):
        expire_once(store, clock)
    store.job_retry([job_id], "ana")
    for _ in range(2):
        assert state(store, job_id) == "pending"
        expire_once(store, clock)
    assert state(store, job_id) == "quarantined"


def test_committed_jobs_come_to_succeeded(store: Store, clock: StoreClock) -> None:
    """C6, G2: what a dead worker had committed is finished by the reaper, and never run again."""
    lost, committed = enqueue(store), enqueue(store)
    held = claim(store)
    store.job_commit(commit(held[1], result="1"))
    clock.advance(LEASE + 1)
    assert store.lease_reap(10) == Reaped(leases=1, aborted=(lost,), recovered=(committed,))
    row = job(store, committed)
    assert (row.state, row.result, row.finished_at) == ("succeeded", "1", clock.now())
    (execution,) = store.job_executions(committed)
    assert (execution.state, execution.outcome, execution.worker) == ("done", "done", "ana")
    assert [each.job_id for each in claim(store)] == [lost]


def test_what_ended_in_time_is_not_touched(store: Store, clock: StoreClock) -> None:
    """The lease row goes, its finished jobs stay as they are."""
    enqueue(store)
    held = claim_one(store)
    finish(store, held)
    before = job(store, held.job_id)
    clock.advance(LEASE + 1)
    assert store.lease_reap(10) == Reaped(leases=1)
    assert job(store, held.job_id) == before
    assert store.lease_reap(10) == Reaped()


def test_a_job_that_moved_on_is_not_reaped_with_its_old_lease(store: Store, clock: StoreClock) -> None:
    """J5: a lease holds only jobs that name it."""
    job_id = enqueue(store)
    held = claim_one(store)
    store.job_abort([_released(held.job_id)], "ana")
    clock.advance(LEASE - 1)
    claim_one(store, worker="bob")
    clock.advance(1)
    assert store.lease_reap(10) == Reaped(leases=1)
    assert (state(store, job_id), job(store, job_id).attempt) == ("running", 2)


def test_unknown_and_cancelled_follow_the_rules_of_an_abort(store: Store, clock: StoreClock) -> None:
    """C5, J8: begun and not idempotent: unknown; asked to stop: cancelled; never begun: pending again."""
    begun, asked, fresh = (enqueue(store, idempotent=False) for _ in range(3))
    claim(store)
    store.job_start([(begun, 1)])
    store.job_cancel([asked], "ana")
    clock.advance(LEASE + 1)
    assert store.lease_reap(10).aborted == (begun, asked, fresh)
    assert [state(store, job_id) for job_id in (begun, asked, fresh)] == ["quarantined", "cancelled", "pending"]
    outcomes = [store.job_executions(job_id)[0].outcome for job_id in (begun, asked, fresh)]
    assert outcomes == ["unknown", "expired", "expired"]


def test_in_portions_the_oldest_first(store: Store, clock: StoreClock) -> None:
    for _ in range(3):
        enqueue(store)
        claim(store)
        clock.advance(1)
    clock.advance(LEASE)
    assert [store.lease_reap(2).leases, store.lease_reap(2).leases, store.lease_reap(2).leases] == [2, 1, 0]


def test_nothing_is_left_of_a_reaped_lease(store: Store, store_url: str, clock: StoreClock) -> None:
    enqueue(store)
    claim(store)
    clock.advance(LEASE + 1)
    store.lease_reap(10)
    assert dump(store_url)["lease"] == []


def _released(job_id: int) -> Abort:
    return Abort(job_id=job_id, attempt=1, outcome="released")
