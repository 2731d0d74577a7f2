"""lease_reap with a grace: leases that ran out while no worker looked may be renewed first."""

from __future__ import annotations

import pytest

from detent.model.records import Reaped
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, claim, enqueue, state
from tests.contract.workers.sample_workers import worker

JUMP = 600.0


def reap(store: Store, verb: str) -> Reaped:
    """By the one verb or the other, with the grace that workers give."""
    return store.lease_reap(10, LEASE) if verb == "lease_reap" else store.lease_reap_each(10, [], LEASE)


def watch(store: Store, clock: StoreClock, seconds: float) -> None:
    """Let time pass while a worker looks every second."""
    for _ in range(int(seconds)):
        clock.advance(1)
        store.worker_seen(worker(1))


def held_job(store: Store) -> tuple[int, int]:
    """A job that is held, and its lease."""
    job_id = enqueue(store)
    claim(store)
    (row,) = store.job_get([job_id])
    assert row is not None
    assert row.lease_id is not None
    return job_id, row.lease_id


@pytest.mark.parametrize("verb", ["lease_reap", "lease_reap_each"])
@pytest.mark.parametrize("first", ["reaper", "the same worker", "a worker that starts after the jump"])
def test_a_jump_of_the_clock_takes_nothing_from_a_living_holder(
    store: Store, clock: StoreClock, verb: str, first: str
) -> None:
    """J5, J7: whoever comes first after it. A jump of ten minutes took all jobs from living holders."""
    store.worker_seen(worker(1))
    job_id, lease_id = held_job(store)
    clock.advance(JUMP)
    if first != "reaper":
        store.worker_seen(worker(1 if first == "the same worker" else 2))
    assert reap(store, verb) == Reaped()
    watch(store, clock, LEASE / 3)
    assert reap(store, verb) == Reaped()
    assert store.lease_renew([lease_id], LEASE)[0].held
    watch(store, clock, LEASE - 1)
    assert (reap(store, verb), state(store, job_id)) == (Reaped(), "running")


@pytest.mark.parametrize("verb", ["lease_reap", "lease_reap_each"])
def test_a_holder_that_does_not_renew_within_the_grace_is_dead(store: Store, clock: StoreClock, verb: str) -> None:
    """J6"""
    store.worker_seen(worker(1))
    job_id, _ = held_job(store)
    clock.advance(JUMP)
    store.worker_seen(worker(1))
    watch(store, clock, LEASE)
    assert (reap(store, verb).aborted, state(store, job_id)) == ((job_id,), "pending")


@pytest.mark.parametrize("verb", ["lease_reap", "lease_reap_each"])
def test_a_lease_that_runs_out_while_workers_look_goes_at_once(store: Store, clock: StoreClock, verb: str) -> None:
    """J6: what a dead worker held is at work again within a second or two."""
    job_id, _ = held_job(store)
    watch(store, clock, LEASE + 1)
    assert reap(store, verb).aborted == (job_id,)


def test_workers_that_keep_dying_do_not_keep_a_lease_alive(store: Store, clock: StoreClock) -> None:
    """J6: each lease runs out in one gap only, so a second gap does not spare it once more."""
    store.worker_seen(worker(1))
    job_id, _ = held_job(store)
    clock.advance(JUMP)
    store.worker_seen(worker(2))
    clock.advance(LEASE / 2)
    store.worker_seen(worker(3))
    assert store.lease_reap(10, LEASE).aborted == (job_id,)


def test_without_a_grace_and_before_the_first_worker_nothing_is_spared(store: Store, clock: StoreClock) -> None:
    """A script that asks for the next ops run is no worker, and must not wait for one."""
    first, _ = held_job(store)
    clock.advance(JUMP)
    assert store.lease_reap(10, LEASE).aborted == (first,)
    store.worker_seen(worker(1))
    (second,) = (one.job_id for one in claim(store))
    clock.advance(JUMP)
    assert store.lease_reap(10).aborted == (second,)
