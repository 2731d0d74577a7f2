"""counts_fold, and the counts of jobs at rest that it adds up: exact after every move, and no walk through all jobs."""

from __future__ import annotations

from detent.model.records import Finish
from detent.store.contract import Store
from detent.store.jobs.filters import JobFilter
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim, enqueue, finish, quarantined, succeeded


def found(store: Store) -> dict[str, int]:
    """The counts by state; both ways of counting must agree."""
    by_state: dict[str, int] = {}
    for one in store.counts():
        by_state[one.state] = by_state.get(one.state, 0) + one.jobs
    for state, jobs in by_state.items():
        assert store.job_count(JobFilter(state=state)) == jobs, state
    assert store.job_count(JobFilter()) == sum(by_state.values())
    return by_state


def test_adding_changes_up_changes_no_answer(store: Store) -> None:
    """R4: a change counts from the moment it is committed."""
    for number in range(3):
        enqueue(store, tenant=f"t{number}")
    held = claim(store)
    store.job_finish([Finish(one.job_id, one.attempt, None) for one in held], "ana")
    before = store.counts()
    assert [(one.tenant, one.state, one.jobs) for one in before] == [(f"t{n}", "succeeded", 1) for n in range(3)]
    assert (store.counts_fold(2), store.counts_fold(2)) == (1, 0)
    assert store.counts() == before
    store.job_cancel([enqueue(store) for _ in range(3)], "ana")
    before = store.counts()
    assert (store.counts_fold(2), store.counts_fold(2)) == (6, 0), "of each job, the count and the move"
    assert store.counts() == before


def test_every_move_to_and_from_rest_is_counted(store: Store, clock: StoreClock) -> None:
    """R4: also those of people, of the reaper and of retention."""
    succeeded(store)
    dead = quarantined(store)
    failed = enqueue(store, dead_letter=False, attempts_max=1)
    abort(store, claim(store)[0], error="boom")
    cancelled, other = enqueue(store), enqueue(store)
    store.job_cancel([cancelled, other], "ana")
    assert found(store) == {"succeeded": 1, "quarantined": 1, "failed": 1, "cancelled": 2}
    store.counts_fold(100)
    store.job_retry([failed, cancelled], "ana")
    assert found(store) == {"succeeded": 1, "quarantined": 1, "cancelled": 1, "pending": 2}
    (held, _) = claim(store)
    assert found(store) == {"succeeded": 1, "quarantined": 1, "cancelled": 1, "running": 2}
    finish(store, held)
    store.job_force(dead, "succeeded", "ana", "it was done")
    assert found(store) == {"succeeded": 3, "cancelled": 1, "running": 1}
    clock.advance(100)
    store.lease_reap(100)
    assert found(store) == {"succeeded": 3, "cancelled": 1, "pending": 1}
    store.job_prune(store.now(), None, 100, "ana")
    assert found(store) == {"pending": 1}
