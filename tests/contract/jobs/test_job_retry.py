"""job_retry: once more, with all attempts anew."""

from __future__ import annotations

from datetime import timedelta

import pytest

from detent.errors import InvalidTransition, NotFound
from detent.lifecycle.library import JOB
from detent.model.records import Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import (
    LEASE,
    abort,
    claim,
    claim_one,
    enqueue,
    finish,
    job,
    quarantined,
    state,
    succeeded,
)
from tests.contract.refusals import Untouched, refused


def resting_in(store: Store, found: str) -> int:
    """A job that rests in this state."""
    if found == "quarantined":
        return quarantined(store, attempts_max=2)
    job_id = enqueue(store, dead_letter=False, attempts_max=2)
    if found == "cancelled":
        store.job_cancel([job_id], "ana")
    else:
        abort(store, claim_one(store), error="boom", fatal=True)
    assert state(store, job_id) == found
    return job_id


@pytest.mark.parametrize("found", ["failed", "quarantined", "cancelled"])
def test_back_to_pending_with_fresh_attempts(store: Store, clock: StoreClock, found: str) -> None:
    """J10: due now, and as many attempts as at first; who and why are recorded."""
    job_id = resting_in(store, found)
    before = job(store, job_id).attempt
    clock.advance(timedelta(days=1))
    assert store.job_retry([job_id], "ana", "mended") == [Moved(str(job_id), "pending", True)]
    row = job(store, job_id)
    assert (row.state, row.due_at, row.finished_at, row.error) == ("pending", clock.now(), None, None)
    assert (row.attempt, row.spared) == (before, before)
    last = store.transitions("job", str(job_id))[-1]
    assert (last.from_state, last.to_state, last.trigger) == (found, "pending", "retry")
    assert (last.actor, last.reason, last.at, last.forced) == ("ana", "mended", clock.now(), False)
    assert abort(store, claim_one(store)).state == "pending"
    finish(store, claim_one(store))
    assert state(store, job_id) == "succeeded"


def test_what_was_cancelled_before_it_was_due_keeps_its_time(store: Store, clock: StoreClock) -> None:
    """J10, J9: the client's time, and that of a backoff; a time that has passed meanwhile is over."""
    tomorrow = clock.now() + timedelta(days=1)
    fresh = enqueue(store, due_at=tomorrow)
    tried = enqueue(store)
    abort(store, claim_one(store), delay=3600)
    backoff = job(store, tried).due_at
    store.job_cancel([fresh, tried], "ana")
    clock.advance(60)
    store.job_retry([fresh, tried], "bob")
    assert (job(store, fresh).due_at, job(store, tried).due_at) == (tomorrow, backoff)
    assert store.verify() == []
    assert claim(store) == []
    store.job_cancel([fresh, tried], "ana")
    clock.advance(timedelta(days=2))
    store.job_retry([fresh], "bob")
    assert job(store, fresh).due_at == clock.now()
    assert claim_one(store).job_id == fresh


def test_an_old_cancel_request_is_forgotten(store: Store, clock: StoreClock) -> None:
    """J10: the retried job is not stopped by the request that stopped it before."""
    job_id = enqueue(store)
    held = claim_one(store)
    store.job_cancel([job_id], "ana", "stop")
    abort(store, held, "cancelled")
    store.job_retry([job_id], "bob")
    assert (job(store, job_id).cancel_requested_at, job(store, job_id).cancel_reason) == (None, None)
    lease_id = store.ids_reserve(1)
    again = claim_one(store, lease_id=lease_id)
    assert store.lease_renew([lease_id], LEASE)[0].cancel_requested == ()
    assert abort(store, again).state == "pending"


def test_a_pending_job_needs_nothing(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """L3"""
    job_id = enqueue(store, due_at=clock.now() + timedelta(hours=1))
    with untouched():
        assert store.job_retry([job_id], "ana") == [Moved(str(job_id), "pending", False)]


def test_running_and_succeeded_are_refused(store: Store, untouched: Untouched) -> None:
    """L2: and a succeeded job is final."""
    done = succeeded(store)
    running = enqueue(store)
    claim_one(store)
    with untouched():
        answers = store.job_retry([done, running, 10**12], "ana")
    for answer, job_id, found in zip(answers, (done, running), ("succeeded", "running"), strict=False):
        refused(
            answer,
            InvalidTransition,
            entity="job",
            entity_id=str(job_id),
            from_state=found,
            to_state="pending",
            allowed=JOB.allowed(found),
        )
    refused(answers[2], NotFound, entity="job", entity_id=str(10**12))


def test_many_at_once(store: Store) -> None:
    """J10: retry one, some or all."""
    ids = [resting_in(store, found) for found in ("failed", "quarantined", "cancelled")]
    assert store.job_retry(ids, "ana") == [Moved(str(job_id), "pending", True) for job_id in ids]
