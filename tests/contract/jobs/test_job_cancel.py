"""job_cancel: a pending job at once, a running one through its holder, a committed one never."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from detent.errors import AlreadyCommitted, InvalidInput, InvalidTransition, NotFound
from detent.lifecycle.library import JOB
from detent.model.records import Cancelled, Claimed
from detent.model.workflow_records import Parked
from detent.store.contract import Store
from detent.store.jobs.filters import RecordSearch
from detent.testing.stores import StoreClock, row_violations
from tests.contract.clock_set_back import set_back
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, claim_one, enqueue, job, quarantined, succeeded
from tests.contract.refusals import Untouched, refused
from tests.contract.workflows.sample_workflows import begin, load, park, record, signal


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


def test_a_parked_workflow_undoes_its_steps_first(store: Store, clock: StoreClock) -> None:
    """F20: it is due at once with the request on record; until its steps are undone, no ending cancels it."""
    held = parked(store, undo=True)
    clock.advance(1)
    assert store.job_cancel([held.job_id], "ana", "wrong list") == [Cancelled(held.job_id, "pending")]
    row = job(store, held.job_id)
    assert (row.state, row.due_at, row.cancel_requested_at) == ("pending", clock.now(), clock.now())
    assert (row.cancel_requested_by, row.cancel_reason) == ("ana", "wrong list")
    last = store.transitions("job", str(held.job_id))[-1]
    assert (last.from_state, last.to_state, last.trigger, last.actor) == ("pending", "pending", "request_cancel", "ana")
    assert store.job_cancel([held.job_id], "bob") == [Cancelled(held.job_id, "pending")]
    assert store.verify() == []
    for outcome in ("released", "error", "crashed", "expired"):
        held = claim_one(store)
        assert load(store, held).cancelled
        assert store.cancel_find([(held.job_id, held.attempt)]) == [(held.job_id, held.attempt)]
        if outcome == "expired":
            clock.advance(LEASE + 1)
            store.lease_reap(10)
        else:
            assert abort(store, held, outcome).state == "pending"
        assert store.verify() == []
    held = claim_one(store)
    store.undo_begin(held.job_id, held.attempt, "cancelled")
    assert store.cancel_find([(held.job_id, held.attempt)]) == []  # its worker does not stop it
    assert (ended := abort(store, held, "cancelled")).state == "pending", ended
    held = claim_one(store)
    assert park(store, held, until=clock.now() + timedelta(hours=1)) == Parked(held.job_id, held.attempt)
    assert job(store, held.job_id).state == "pending"
    clock.advance(timedelta(hours=2))
    store.job_promote(10)
    held = claim_one(store)
    record(store, held, "~undone", kind="undo", seq=9)
    assert abort(store, held, "cancelled").state == "cancelled"
    assert store.verify() == []


def test_a_workflow_in_backoff_undoes_its_steps_first(store: Store, clock: StoreClock) -> None:
    """F20: it need not be parked."""
    held = begin(store)
    record(store, held, undo=True)
    abort(store, held, "error", delay=600.0)
    store.job_cancel([held.job_id], "ana")
    assert store.verify() == []
    held = claim_one(store)
    assert held.attempt == 2
    # Its function wants no undo.
    assert abort(store, held, "cancelled").state == "cancelled"
    assert store.verify() == []


def test_a_parked_workflow_without_undo_at_once(store: Store) -> None:
    """F20: nothing to undo, a step that failed, or a caller who wants nothing undone."""
    for held in (parked(store), parked(store, undo=True, value=None, error='{"type":"OSError"}')):
        assert store.job_cancel([held.job_id], "ana") == [Cancelled(held.job_id, "cancelled")]
    held = parked(store, undo=True)
    store.job_cancel([held.job_id], "ana")
    assert store.job_cancel([held.job_id], "bob", "no time", undo=False) == [Cancelled(held.job_id, "cancelled")]
    last = store.transitions("job", str(held.job_id))[-1]
    assert (last.trigger, last.reason, last.metadata) == ("cancel", "no time", '{"undo":false}')
    assert store.verify() == []


def test_a_cancel_without_undo_needs_a_reason(store: Store, untouched: Untouched) -> None:
    """F20: it is on record."""
    job_id = enqueue(store)
    with untouched():
        for reason in (None, ""):
            with pytest.raises(InvalidInput, match="reason"):
                store.job_cancel([job_id], "ana", reason, undo=False)


def test_a_running_workflow_is_asked_again_to_undo_nothing(store: Store, untouched: Untouched) -> None:
    held = begin(store)
    record(store, held, undo=True)
    store.job_cancel([held.job_id], "ana", "wrong list")
    assert store.job_cancel([held.job_id], "bob", "no time", undo=False) == [Cancelled(held.job_id, "running")]
    row = job(store, held.job_id)
    assert (row.cancel_requested_by, row.cancel_reason) == ("bob", "no time")
    assert store.transitions("job", str(held.job_id))[-1].metadata == '{"undo":false}'
    with untouched():
        assert store.job_cancel([held.job_id], "eve", "me too", undo=False) == [Cancelled(held.job_id, "running")]
    assert abort(store, held, "error").state == "cancelled"
    assert store.verify() == []
    store.job_retry([held.job_id], "ana")
    held = claim_one(store)
    store.job_cancel([held.job_id], "ana")
    assert abort(store, held, "error").state == "pending"  # the earlier waiver no longer counts


def parked(store: Store, **step: Any) -> Claimed:
    held = begin(store)
    record(store, held, **step)
    park(store, held, signal())
    return held
