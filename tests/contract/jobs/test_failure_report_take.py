"""failure_report_take: a failure is listed until the application heard of it, and one caller at a time has it."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_failures import TASKS, given_up
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, claim_one, enqueue, state


def test_a_failure_has_one_taker_at_a_time(store: Store, clock: StoreClock) -> None:
    """W6: nobody else gets it meanwhile; if the taker dies, another caller does."""
    made = given_up(store, clock, 3)
    assert store.failure_report_take(TASKS, 2, 60) == made[:2]
    assert store.failure_report_take(TASKS, 10, 60) == made[2:]
    assert store.failure_report_take(TASKS, 10, 60) == []
    clock.advance(60)
    assert store.failure_report_take(TASKS, 10, 60) == made


def test_a_job_without_dead_letters_too(store: Store, clock: StoreClock) -> None:
    made = given_up(store, clock, dead_letter=False)
    assert (state(store, made[0][0]), store.failure_report_take(TASKS, 10, 60)) == ("failed", made)


def test_only_tasks_that_the_caller_knows(store: Store, clock: StoreClock) -> None:
    made = given_up(store, clock)
    assert store.failure_report_take(["other"], 10, 60) == []
    assert store.failure_report_take(["other", *TASKS, *TASKS], 10, 60) == made


def test_a_failure_that_its_holder_wrote_is_on_the_list(store: Store) -> None:
    """The holder may die before it could call a hook, so the ending itself puts the failure on the list."""
    enqueue(store)
    claimed = claim_one(store)
    abort(store, claimed, fatal=True)
    assert store.failure_report_take(TASKS, 10, 60) == [(claimed.job_id, claimed.attempt)]


def test_an_attempt_that_is_tried_again_is_not(store: Store, clock: StoreClock) -> None:
    enqueue(store)
    claim(store)
    clock.advance(LEASE + 1)
    store.lease_reap(100)
    abort(store, claim_one(store))
    assert store.failure_report_take(TASKS, 10, 60) == []
