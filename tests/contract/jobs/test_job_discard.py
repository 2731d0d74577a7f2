"""job_discard: somebody looked at the failure and lets it go."""

from __future__ import annotations

from detent.errors import InvalidTransition, NotFound
from detent.lifecycle.library import JOB
from detent.model.records import Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, enqueue, job, quarantined, succeeded
from tests.contract.refusals import Untouched, refused


def test_dead_letters_and_failures_become_cancelled(store: Store, clock: StoreClock) -> None:
    """J10: on record; the error stays to be read."""
    dead = quarantined(store)
    failed = enqueue(store, dead_letter=False)
    abort(store, claim_one(store), error="boom", fatal=True)
    clock.advance(5)
    assert store.job_discard([dead, failed], "ana", "not worth it") == [
        Moved(str(dead), "cancelled", True),
        Moved(str(failed), "cancelled", True),
    ]
    for job_id, found in ((dead, "quarantined"), (failed, "failed")):
        row = job(store, job_id)
        assert (row.state, row.finished_at, row.error) == ("cancelled", clock.now(), "boom")
        last = store.transitions("job", str(job_id))[-1]
        assert (last.from_state, last.to_state, last.trigger) == (found, "cancelled", "discard")
        assert (last.actor, last.reason) == ("ana", "not worth it")
    assert claim(store) == []


def test_cancelled_needs_nothing(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """L3"""
    job_id = quarantined(store)
    store.job_discard([job_id], "ana")
    clock.advance(1)
    with untouched():
        assert store.job_discard([job_id], "bob") == [Moved(str(job_id), "cancelled", False)]


def test_other_states_are_refused(store: Store, untouched: Untouched) -> None:
    """L2: what waits or runs is cancelled, what has happened stays."""
    done = succeeded(store)
    running = enqueue(store)
    claim_one(store)
    pending = enqueue(store)
    with untouched():
        answers = store.job_discard([done, running, pending, 10**12], "ana")
    for answer, job_id, found in zip(
        answers, (done, running, pending), ("succeeded", "running", "pending"), strict=False
    ):
        refused(
            answer,
            InvalidTransition,
            entity_id=str(job_id),
            from_state=found,
            to_state="cancelled",
            allowed=JOB.allowed(found),
        )
    refused(answers[3], NotFound, entity="job", entity_id=str(10**12))
