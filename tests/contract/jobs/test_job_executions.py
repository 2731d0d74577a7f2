"""job_executions: every attempt of a job, ended or in flight."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, abort, claim_one, commit, enqueue, event, finish
from tests.contract.refusals import Untouched


def test_attempts_in_order_with_the_one_in_flight(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """J1, W3: who had it, what became of it."""
    job_id = enqueue(store)
    assert store.job_executions(job_id) == []
    abort(store, claim_one(store, worker="ana"), error="boom")
    claim_one(store, worker="bob")
    clock.advance(LEASE + 1)
    store.lease_reap(10)
    held = claim_one(store, worker="cid")
    store.event_append([event(held)])
    with untouched():
        executions = store.job_executions(job_id)
    assert [(each.attempt, each.state, each.outcome) for each in executions] == [
        (1, "aborted", "error"),
        (2, "aborted", "expired"),
        (3, "in_progress", None),
    ]
    assert [each.worker for each in executions][1:] == ["bob", "cid"]
    store.job_commit(commit(held))
    assert store.job_executions(job_id)[-1].state == "committed"
    finish(store, held)
    assert [each.state for each in store.job_executions(job_id)] == ["aborted", "aborted", "done"]


def test_no_such_job(store: Store) -> None:
    assert store.job_executions(10**12) == []
