"""job_start: the attempt is in progress, durably, before its function is called."""

from __future__ import annotations

from detent.errors import LeaseLost
from detent.model.records import Started
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, claim, claim_one, enqueue, job
from tests.contract.refusals import Untouched, refused


def test_the_attempt_is_in_progress(store: Store, clock: StoreClock) -> None:
    job_id = enqueue(store)
    held = claim_one(store)
    clock.advance(2)
    assert store.job_start([(job_id, held.attempt)]) == [Started(job_id, 1)]
    assert job(store, job_id).started_at == clock.now()
    (execution,) = store.job_executions(job_id)
    assert (execution.state, execution.started_at) == ("in_progress", clock.now())


def test_starting_again_changes_nothing(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """L3: a same-state move is a no-op: no change of timestamps."""
    job_id = enqueue(store)
    claim_one(store)
    store.job_start([(job_id, 1)])
    clock.advance(2)
    with untouched():
        assert store.job_start([(job_id, 1)]) == [Started(job_id, 1)]


def test_many_at_once_answer_one_by_one(store: Store, clock: StoreClock) -> None:
    """One stale holder among many spoils nothing for the others."""
    for _ in range(3):
        enqueue(store)
    first, second, third = claim(store)
    answers = store.job_start([(first.job_id, 1), (second.job_id, 2), (third.job_id, 1), (10**12, 1)])
    assert answers[0] == Started(first.job_id, 1)
    refused(answers[1], LeaseLost, job_id=second.job_id, attempt=2, found="attempt 1 is current")
    assert answers[2] == Started(third.job_id, 1)
    refused(answers[3], LeaseLost, job_id=10**12, attempt=1, found="no such job")
    assert job(store, second.job_id).started_at is None


def test_only_by_the_holder(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """J5: pending jobs are held by nobody, and an expired lease holds nothing."""
    job_id = enqueue(store)
    with untouched():
        (answer,) = store.job_start([(job_id, 0)])
    refused(answer, LeaseLost, found="the job is pending")
    claim_one(store)
    clock.advance(LEASE)
    with untouched():
        (answer,) = store.job_start([(job_id, 1)])
    refused(answer, LeaseLost, found="its lease has expired")
