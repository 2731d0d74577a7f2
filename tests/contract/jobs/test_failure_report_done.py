"""failure_report_done: a failure that was told is off the list."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_failures import TASKS, given_up
from tests.contract.jobs.sample_jobs import LEASE, claim
from tests.contract.refusals import Untouched


def test_nobody_is_told_again(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    made = given_up(store, clock, 2)
    store.failure_report_take(TASKS, 10, 60)
    store.failure_report_done(made[:1])
    with untouched():
        store.failure_report_done(made[:1])
    clock.advance(60)
    assert store.failure_report_take(TASKS, 10, 60) == made[1:]


def test_the_next_failure_of_the_same_job_stays(store: Store, clock: StoreClock) -> None:
    """A hook retries its job, which fails again before the hook has returned. That failure was lost: the list had one
    row for each job, and the end of the first hook took it away."""
    ((job_id, _),) = first = given_up(store, clock)
    store.failure_report_take(TASKS, 10, 60)
    store.job_retry([job_id], "hook")
    claim(store)
    clock.advance(LEASE + 1)
    store.lease_reap(100)
    store.failure_report_done(first)
    assert store.failure_report_take(TASKS, 10, 60) == [(job_id, 2)]
