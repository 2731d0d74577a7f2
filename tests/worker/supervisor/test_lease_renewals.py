"""What dead children held is ended by one thread: the supervisor leaves it to renewals that still run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from detent.model.clock import SystemClock
from detent.store.contract import Store
from detent.worker.options import WorkerOptions
from detent.worker.outage_backoff import OutageBackoff
from detent.worker.services.service_set import ServiceSet
from detent.worker.supervisor.dead_child import DeadLease, Death
from detent.worker.supervisor.lease_renewals import LeaseRenewals
from tests.contract.jobs.sample_jobs import claim_one, enqueue
from tests.deadlines import scaled

SECONDS_MAX = scaled(30)


class Gated:
    """The real store, whose aborts wait until the gate is opened."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.inside, self.open = threading.Event(), threading.Event()
        self.aborts = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def job_abort(self, *args: Any) -> Any:
        self.aborts += 1
        if self.inside.is_set() and not self.open.is_set():
            return []  # a second thread came
        self.inside.set()
        assert self.open.wait(SECONDS_MAX)
        return self._store.job_abort(*args)


@pytest.fixture
def gated(store: Store) -> Gated:
    return Gated(store)


@pytest.fixture
def lease_renewals(store: Store, gated: Gated) -> LeaseRenewals:
    options = WorkerOptions(app="shop:app", name="ana")
    clock = SystemClock()
    backoff = OutageBackoff(clock, threading.Event())
    services = ServiceSet(gated, options, 7)
    made = LeaseRenewals(
        gated, options, clock, backoff, services, children=list, failures_found=services.failures_found.set
    )
    enqueue(store)
    held = claim_one(store, lease_id=99)
    assert held.attempt == 1
    made.add_dead([DeadLease(99, Death(0.0, "exit code 1", "itself"))])
    return made


@contextmanager
def renewing(lease_renewals: LeaseRenewals, gated: Gated) -> Iterator[threading.Thread]:
    """The thread that renews, in the middle of ending what a dead child held."""
    thread = threading.Thread(target=lease_renewals.end_dead_leases)
    thread.start()
    try:
        assert gated.inside.wait(SECONDS_MAX)
        yield thread
    finally:
        gated.open.set()
        thread.join(SECONDS_MAX)


def test_the_last_look_does_not_end_what_the_renewals_are_ending(
    store: Store, lease_renewals: LeaseRenewals, gated: Gated
) -> None:
    """W1: both ended the same attempt: it was counted twice, or an attempt that began meanwhile was ended."""
    with renewing(lease_renewals, gated) as thread:
        lease_renewals.finish(thread)
        assert gated.aborts == 1
    assert not thread.is_alive()
    lease_renewals.finish(thread)
    assert (gated.aborts, lease_renewals._dead, dict(lease_renewals.tally)) == (1, [], {"put off": 1})
    assert [count.state for count in store.counts()] == ["pending"]


def test_what_no_renewal_ended_is_ended_last(store: Store, lease_renewals: LeaseRenewals, gated: Gated) -> None:
    """W1: a lease of a dead child does not have to run out."""
    gated.open.set()
    ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join(SECONDS_MAX)
    lease_renewals.finish(ended)
    assert (gated.aborts, lease_renewals._dead, dict(lease_renewals.tally)) == (1, [], {"put off": 1})
