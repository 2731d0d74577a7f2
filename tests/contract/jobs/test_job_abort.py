"""job_abort: how an attempt that did not succeed ends, rule by rule."""

from __future__ import annotations

from datetime import timedelta

import pytest

from detent.errors import AlreadyCommitted, LeaseLost
from detent.model.records import Abort, Aborted
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, claim_one, commit, enqueue, finish, job, state
from tests.contract.refusals import Untouched, refused


def test_attempts_left_go_back_to_pending_after_the_delay(store: Store, clock: StoreClock) -> None:
    """J9: an error is on record with its attempt; the job waits for its time."""
    job_id = enqueue(store)
    held = claim_one(store)
    clock.advance(1)
    assert abort(store, held, error="boom", delay=2.5) == Aborted(job_id, 1, "error", "pending")
    row = job(store, job_id)
    due = clock.now() + timedelta(seconds=2.5)
    assert (row.state, row.due_at, row.error, row.finished_at, row.ended, row.spared) == (
        "pending",
        due,
        None,
        None,
        1,
        0,
    )
    (execution,) = store.job_executions(job_id)
    assert (execution.state, execution.outcome, execution.error) == ("aborted", "error", "boom")
    assert (execution.worker, execution.aborted_at, execution.done_at) == ("ana", clock.now(), None)
    assert (execution.next_state, execution.next_due_at, execution.counted) == ("pending", due, True)
    assert claim(store) == []
    clock.advance(2.5)
    assert store.job_promote(10) == 1
    assert claim_one(store).attempt == 2


def test_without_a_delay_it_is_ready_at_once(store: Store) -> None:
    job_id = enqueue(store)
    abort(store, claim_one(store))
    assert claim_one(store).job_id == job_id


@pytest.mark.parametrize("outcome", ["error", "crashed", "timed_out"])
def test_attempts_run_out(store: Store, outcome: str) -> None:
    """J6, J10: n attempts, then quarantined among the dead letters with the last error."""
    job_id = enqueue(store, attempts_max=2)
    assert abort(store, claim_one(store), outcome, error="first").state == "pending"
    assert abort(store, claim_one(store), outcome, error="last") == Aborted(job_id, 2, outcome, "quarantined")  # type: ignore[arg-type]
    row = job(store, job_id)
    assert (row.state, row.error, row.attempt) == ("quarantined", "last", 2)
    assert claim(store) == []
    assert [each.error for each in store.job_executions(job_id)] == ["first", "last"]


def test_a_fatal_error_needs_no_further_attempt(store: Store, clock: StoreClock) -> None:
    """J9: fatal exception types."""
    job_id = enqueue(store)
    held = claim_one(store)
    clock.advance(1)
    assert abort(store, held, error="no", fatal=True, delay=5.0) == Aborted(job_id, 1, "error", "quarantined")
    row = job(store, job_id)
    assert (row.state, row.error, row.finished_at) == ("quarantined", "no", clock.now())
    (execution,) = store.job_executions(job_id)
    assert (execution.next_state, execution.next_due_at, execution.counted) == ("quarantined", None, True)


def test_without_dead_letters_it_rests_as_failed(store: Store) -> None:
    """J6"""
    for options, fatal in (({"attempts_max": 1}, False), ({}, True)):
        job_id = enqueue(store, dead_letter=False, **options)
        assert abort(store, claim_one(store), error="e", fatal=fatal).state == "failed"
        assert (state(store, job_id), job(store, job_id).error) == ("failed", "e")


@pytest.mark.parametrize("outcome", ["released", "snoozed", "throttled"])
def test_spared_attempts_do_not_count(store: Store, clock: StoreClock, outcome: str) -> None:
    """J7: counted apart; a job released a hundred times has all its attempts left."""
    job_id = enqueue(store, attempts_max=1)
    for spared in (1, 2, 3):
        assert abort(store, claim_one(store), outcome).state == "pending"
        assert (job(store, job_id).spared, job(store, job_id).attempt) == (spared, spared)
    assert abort(store, claim_one(store), outcome, delay=60.0, fatal=True).state == "pending"
    assert claim(store) == []
    clock.advance(60)
    store.job_promote(1)
    assert abort(store, claim_one(store), "error").state == "quarantined"
    assert [each.counted for each in store.job_executions(job_id)] == [False] * 4 + [True]


@pytest.mark.parametrize("outcome", ["crashed", "timed_out"])
@pytest.mark.parametrize("started", [True, False])
def test_what_may_have_happened_is_unknown(store: Store, outcome: str, started: bool) -> None:
    """C5: what began, of a task that is not idempotent, waits for a person; what never began does not."""
    job_id = enqueue(store, idempotent=False)
    held = claim_one(store)
    if started:
        store.job_start([(job_id, 1)])
    answer = abort(store, held, outcome, error="e")
    if started:
        assert answer == Aborted(job_id, 1, "unknown", "quarantined")
        assert store.job_executions(job_id)[0].outcome == "unknown"
    else:
        assert answer == Aborted(job_id, 1, outcome, "pending")  # type: ignore[arg-type]


def test_an_error_of_a_task_that_is_not_idempotent_is_no_riddle(store: Store) -> None:
    """C5: an error was told by the function itself; released work was never lost sight of."""
    job_id = enqueue(store, idempotent=False)
    for outcome in ("error", "released"):
        held = claim_one(store)
        store.job_start([(job_id, held.attempt)])
        assert abort(store, held, outcome).state == "pending"


def test_a_requested_cancel_is_obeyed(store: Store, clock: StoreClock) -> None:
    """J8: whatever the attempt ended with, the job is cancelled; even released."""
    for outcome in ("cancelled", "error", "released", "timed_out"):
        job_id = enqueue(store)
        held = claim_one(store)
        store.job_cancel([job_id], "ana", "wrong list")
        assert abort(store, held, outcome) == Aborted(job_id, 1, outcome, "cancelled")
        row = job(store, job_id)
        assert (row.state, row.finished_at, row.cancel_requested_by) == ("cancelled", clock.now(), "ana")
    assert claim(store) == []


def test_without_a_request_nothing_is_cancelled(store: Store) -> None:
    """J8: a worker that took a retried job for cancelled used to end it for good. Now the job goes back, uncharged."""
    job_id = enqueue(store, attempts_max=1)
    assert abort(store, claim_one(store), "cancelled", error="asked to") == Aborted(job_id, 1, "released", "pending")
    again = claim_one(store)
    store.job_cancel([job_id], "ana")
    assert abort(store, again, "cancelled", error="asked to") == Aborted(job_id, 2, "cancelled", "cancelled")
    assert job(store, job_id).error == "asked to"


def test_unknown_wins_over_a_cancel(store: Store) -> None:
    """C5: whoever asked for the stop must still learn that the effect may have happened."""
    job_id = enqueue(store, idempotent=False)
    held = claim_one(store)
    store.job_start([(job_id, 1)])
    store.job_cancel([job_id], "ana")
    assert abort(store, held, "crashed") == Aborted(job_id, 1, "unknown", "quarantined")


def test_a_committed_attempt_is_not_aborted(store: Store, untouched: Untouched) -> None:
    """C1: its effect has happened."""
    job_id = enqueue(store)
    held = claim_one(store)
    store.job_commit(commit(held))
    with untouched():
        for outcome in ("error", "cancelled", "released", "crashed"):
            refused(abort(store, held, outcome), AlreadyCommitted, job_id=job_id, attempt=1)


def test_aborting_again_answers_the_same_again(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """L3: also after another attempt has begun. Another outcome is no repetition."""
    job_id = enqueue(store)
    held = claim_one(store)
    first = abort(store, held, error="boom")
    clock.advance(1)
    with untouched():
        assert abort(store, held, error="boom") == first
        refused(abort(store, held, "released"), LeaseLost, job_id=job_id, attempt=1, found="the job is pending")
    claim_one(store)
    with untouched():
        assert abort(store, held) == first
        refused(abort(store, held, "crashed"), LeaseLost, job_id=job_id, attempt=1, found="attempt 2 is current")


def test_many_at_once_answer_one_by_one(store: Store) -> None:
    ids = [enqueue(store, attempts_max=1) for _ in range(4)]
    held = claim(store)
    finish(store, held[1])
    answers = store.job_abort(
        [
            Abort(job_id=ids[0], attempt=1, outcome="error"),
            Abort(job_id=ids[2], attempt=2, outcome="error"),
            Abort(job_id=10**12, attempt=1, outcome="error"),
            Abort(job_id=ids[3], attempt=1, outcome="snoozed", delay=1.0),
        ],
        "ana",
    )
    assert answers[0] == Aborted(ids[0], 1, "error", "quarantined")
    refused(answers[1], LeaseLost, job_id=ids[2], attempt=2, found="attempt 1 is current")
    refused(answers[2], LeaseLost, job_id=10**12, attempt=1, found="no such job")
    assert answers[3] == Aborted(ids[3], 1, "snoozed", "pending")


def test_only_by_the_holder(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """C4"""
    enqueue(store)
    held = claim_one(store)
    clock.advance(LEASE)
    with untouched():
        refused(abort(store, held), LeaseLost, found="its lease has expired")


@pytest.mark.parametrize("outcome", ["error", "crashed", "timed_out", "released", "cancelled"])
def test_the_start_is_when_the_function_was_called(store: Store, clock: StoreClock, outcome: str) -> None:
    """R2: an attempt that was cut off half a second into its function had no start on record."""
    job_id = enqueue(store)
    leased_at = clock.now()
    held = claim_one(store)
    clock.advance(4)
    abort(store, held, outcome, begun_after=0.5)
    (execution,) = store.job_executions(job_id)
    assert (execution.started_at, execution.aborted_at) == (leased_at + timedelta(seconds=0.5), clock.now())
    assert job(store, job_id).started_at == execution.started_at


def test_without_a_call_there_is_no_start(store: Store, clock: StoreClock) -> None:
    """R2: what was handed back untouched never began."""
    job_id = enqueue(store)
    held = claim_one(store)
    clock.advance(4)
    abort(store, held, "released")
    assert store.job_executions(job_id)[0].started_at is None


def test_a_call_that_is_told_with_the_end_counts_as_a_start(store: Store) -> None:
    """C6: a task that must not be repeated blindly was called, and nobody knows how far it came."""
    job_id = enqueue(store, idempotent=False)
    assert abort(store, claim_one(store), "crashed", begun_after=0.0) == Aborted(job_id, 1, "unknown", "quarantined")


@pytest.mark.parametrize("suspect", [False, True])
def test_whether_its_job_may_have_brought_the_process_down(store: Store, suspect: bool) -> None:
    """W5: it is on record in a column of its own, and the next attempt reads it there."""
    job_id = enqueue(store)
    abort(store, claim_one(store), "released", suspect=suspect)
    claim_one(store)
    assert [one.suspect for one in store.job_executions(job_id)] == [suspect, None]
