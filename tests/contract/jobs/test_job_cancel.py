"""job_cancel: a pending job at once, a running one through its holder, a committed one never."""

from __future__ import annotations

from datetime import timedelta

from detent.errors import AlreadyCommitted, InvalidTransition, NotFound
from detent.lifecycle.library import JOB
from detent.model.records import Cancelled
from detent.store.contract import Store
from detent.store.jobs.filters import RecordSearch
from detent.testing.stores import StoreClock, row_violations
from tests.contract.clock_set_back import set_back
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, enqueue, job, quarantined, succeeded
from tests.contract.refusals import Untouched, refused


def test_a_pending_job_at_once(store: Store, clock: StoreClock) -> None:
    """J8: due or not; who, why and when are recorded."""
    ready = enqueue(store, correlation_id="c")
    waiting = enqueue(store, due_at=clock.now() + timedelta(hours=1))
    clock.advance(1)
    assert store.job_cancel([ready, waiting], "ana", "wrong list") == [
        Cancelled(ready, "cancelled"),
        Cancelled(waiting, "cancelled"),
    ]
    assert job(store, ready).finished_at == job(store, waiting).finished_at == clock.now()
    last = store.transitions("job", str(ready))[-1]
    assert (last.from_state, last.to_state, last.trigger) == ("pending", "cancelled", "cancel")
    assert (last.actor, last.reason, last.at, last.correlation_id) == ("ana", "wrong list", clock.now(), "c")
    clock.advance(timedelta(hours=2))
    store.job_promote(10)
    assert claim(store) == []


def test_a_running_job_is_asked_to_stop(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """J8: the first request stands; asking again changes nothing."""
    job_id = enqueue(store)
    claim_one(store)
    clock.advance(1)
    asked = clock.now()
    assert store.job_cancel([job_id], "ana", "wrong list") == [Cancelled(job_id, "running")]
    clock.advance(1)
    with untouched():
        assert store.job_cancel([job_id], "bob", "me too") == [Cancelled(job_id, "running")]
    row = job(store, job_id)
    assert (row.state, row.cancel_requested_at) == ("running", asked)
    assert (row.cancel_requested_by, row.cancel_reason) == ("ana", "wrong list")
    last = store.transitions("job", str(job_id))[-1]
    assert (last.from_state, last.to_state, last.trigger, last.actor) == ("running", "running", "request_cancel", "ana")


def test_a_cancelled_job_needs_nothing(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """L3: a same-state move is a no-op."""
    job_id = enqueue(store)
    store.job_cancel([job_id], "ana")
    clock.advance(1)
    with untouched():
        assert store.job_cancel([job_id], "bob") == [Cancelled(job_id, "cancelled")]


def test_what_has_happened_cannot_be_stopped(store: Store, untouched: Untouched) -> None:
    """J8: AlreadyCommitted."""
    job_id = succeeded(store)
    with untouched():
        refused(store.job_cancel([job_id], "ana")[0], AlreadyCommitted, job_id=job_id, attempt=1)


def test_what_rests_otherwise_is_discarded_not_cancelled(store: Store, untouched: Untouched) -> None:
    """L2: the refusal names the entity, from, to and what would have been allowed."""
    dead = quarantined(store)
    failed = enqueue(store, dead_letter=False)
    abort(store, claim_one(store), fatal=True)
    with untouched():
        answers = store.job_cancel([dead, failed], "ana")
    for answer, job_id, found in zip(answers, (dead, failed), ("quarantined", "failed"), strict=True):
        refused(
            answer,
            InvalidTransition,
            entity="job",
            entity_id=str(job_id),
            from_state=found,
            to_state="cancelled",
            allowed=JOB.allowed(found),
        )


def test_many_at_once_answer_one_by_one(store: Store) -> None:
    first, second = enqueue(store), enqueue(store)
    answers = store.job_cancel([first, 10**12, second], "ana")
    assert answers[0] == Cancelled(first, "cancelled")
    refused(answers[1], NotFound, entity="job", entity_id=str(10**12))
    assert answers[2] == Cancelled(second, "cancelled")
    assert store.job_cancel([], "ana") == []


def test_the_record_has_jobs_of_one_call_by_id(store: Store) -> None:
    """J8: one database wrote them in the order of the call, so the same record was listed in two ways."""
    first, second = enqueue(store), enqueue(store)
    claim(store)
    assert store.job_cancel([second, first], "ana") == [Cancelled(second, "running"), Cancelled(first, "running")]
    rows = store.record_search(RecordSearch(actor="ana")).rows
    assert [row.entity_id for row in rows] == [str(second), str(first)], "the newest first"


def test_no_move_is_earlier_than_the_end_of_the_last_attempt(store: Store, clock: StoreClock, store_url: str) -> None:
    """R2: after the clock was set back, the record of a job that was cancelled between two attempts ran backwards."""
    job_id = enqueue(store)
    held = claim_one(store)
    clock.advance(5)
    abort(store, held, error="boom", delay=60.0)
    ended_at = clock.now()
    set_back(clock, 3600)
    store.job_cancel([job_id], "ana")
    assert job(store, job_id).finished_at == ended_at
    assert row_violations(store, store_url) == []
