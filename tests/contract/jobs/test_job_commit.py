"""job_commit: the mark that the effect has happened; one for each job, for ever."""

from __future__ import annotations

from detent.errors import AlreadyCommitted, IdConflict, KeyConflict, LeaseLost
from detent.model.records import Cancelled, Committed, Finished
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, claim_one, commit, enqueue, finish, job, new_job, state
from tests.contract.refusals import Untouched, refused


def test_the_attempt_is_committed(store: Store, clock: StoreClock) -> None:
    """C1: with its result; the job is running still."""
    job_id = enqueue(store)
    held = claim_one(store)
    clock.advance(2)
    assert store.job_commit(commit(held, result='{"paid":1}')) == Committed(job_id, 1)
    row = job(store, job_id)
    assert (row.state, row.result) == ("running", '{"paid":1}')
    assert row.started_at == row.committed_at == clock.now()
    assert [execution.state for execution in store.job_executions(job_id)] == ["committed"]


def test_a_second_commit_is_refused(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """C1: at most one execution of a job ever reaches committed."""
    job_id = enqueue(store)
    held = claim_one(store)
    store.job_commit(commit(held))
    clock.advance(1)
    with untouched():
        refused(store.job_commit(commit(held, result="2")), AlreadyCommitted, job_id=job_id, attempt=1)
    finish(store, held)
    with untouched():
        refused(store.job_commit(commit(held)), AlreadyCommitted, job_id=job_id, attempt=1)


def test_intents_are_enqueued_with_it(store: Store, clock: StoreClock) -> None:
    """C3: each a job of its own under a stable key; one that is there already is the same intent."""
    enqueue(store)
    held = claim_one(store)
    receipt = new_job(store, task="receipt", key=f"job:{held.job_id}:receipt")
    ship = new_job(store, task="ship")
    existing = enqueue(store, task="invoice", key="i")
    same = new_job(store, task="invoice", key="i")
    assert store.job_commit(commit(held, intents=(receipt, ship, same))) == Committed(held.job_id, 1)
    claimed = claim(store, tasks=["receipt", "ship", "invoice"])
    assert {each.job_id for each in claimed} == {existing, receipt.id, ship.id}


def test_a_refused_intent_refuses_the_commit(store: Store, untouched: Untouched) -> None:
    """C2: all of it or nothing."""
    taken = enqueue(store, key="k")
    held = claim_one(store)
    fine, lane = new_job(store), enqueue(store)
    with untouched():
        wrong_id = new_job(store, id=taken, payload="0")
        refused(store.job_commit(commit(held, intents=(fine, wrong_id))), IdConflict, job_id=taken)
        wrong_key = new_job(store, id=lane + 1000, key="k", payload="0")
        refused(store.job_commit(commit(held, intents=(fine, wrong_key))), KeyConflict, key="k", job_id=taken)
    assert job(store, held.job_id).committed_at is None
    assert store.job_commit(commit(held, intents=(fine,))) == Committed(held.job_id, 1)


def test_a_refused_commit_enqueues_no_intent(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """C4: a zombie's intents come to nothing."""
    job_id = enqueue(store)
    held = claim_one(store)
    intent = new_job(store)
    clock.advance(LEASE + 1)
    with untouched():
        refused(store.job_commit(commit(held, intents=(intent,))), LeaseLost, found="its lease has expired")
    store.lease_reap(10)
    with untouched():
        refused(store.job_commit(commit(held, intents=(intent,))), LeaseLost, found="the job is pending")
    again = claim_one(store)
    with untouched():
        refused(store.job_commit(commit(held, intents=(intent,))), LeaseLost, found="attempt 2 is current")
    assert store.job_commit(commit(again, intents=(intent,))) == Committed(job_id, 2)


def test_what_is_committed_can_no_longer_be_stopped(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """C1: neither by an abort, nor by a cancel, nor by the end of the lease."""
    job_id = enqueue(store)
    held = claim_one(store)
    store.job_commit(commit(held))
    with untouched():
        refused(abort(store, held), AlreadyCommitted, job_id=job_id, attempt=1)
        refused(store.job_cancel([job_id], "ana")[0], AlreadyCommitted, job_id=job_id, attempt=1)
    clock.advance(LEASE + 1)
    assert store.lease_reap(10).recovered == (job_id,)
    assert state(store, job_id) == "succeeded"


def test_a_cancel_request_that_came_first_does_not_stop_the_commit(store: Store) -> None:
    """J8: the request is told at the next renewal; until then the holder goes on."""
    job_id = enqueue(store)
    held = claim_one(store)
    assert store.job_cancel([job_id], "ana") == [Cancelled(job_id, "running")]
    assert store.job_commit(commit(held)) == Committed(job_id, 1)
    assert finish(store, held) == Finished(job_id, 1)
    assert state(store, job_id) == "succeeded"
