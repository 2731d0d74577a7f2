"""job_expire: what nobody claimed in time is cancelled."""

from __future__ import annotations

from datetime import timedelta

from detent.model.limit_records import NewLimit
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, enqueue, finish, job, state
from tests.contract.refusals import Untouched


def test_pending_jobs_past_their_expiry_are_cancelled(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """J12: due or not, on record."""
    soon = clock.now() + timedelta(seconds=10)
    ready = enqueue(store, expires_at=soon)
    waiting = enqueue(store, expires_at=soon, due_at=clock.now() + timedelta(hours=1))
    patient = enqueue(store, expires_at=clock.now() + timedelta(hours=1))
    endless = enqueue(store)
    clock.advance(9)
    with untouched():
        assert store.job_expire(10) == []
    clock.advance(2)
    assert sorted(store.job_expire(10)) == [ready, waiting]
    assert (state(store, ready), job(store, ready).finished_at) == ("cancelled", clock.now())
    last = store.transitions("job", str(waiting))[-1]
    assert (last.from_state, last.to_state, last.trigger, last.actor) == ("pending", "cancelled", "expire", "system")
    assert [held.job_id for held in claim(store)] == [patient, endless]
    with untouched():
        assert store.job_expire(10) == []


def test_what_was_claimed_in_time_does_not_expire(store: Store, clock: StoreClock) -> None:
    """J12: also not while it runs; back in pending it does."""
    expires = clock.now() + timedelta(seconds=10)
    finished, returned = enqueue(store, expires_at=expires), enqueue(store, expires_at=expires)
    first, second = claim(store)
    clock.advance(11)
    assert store.job_expire(10) == []
    finish(store, first)
    abort(store, second, "released")
    assert store.job_expire(10) == [returned]
    assert (state(store, finished), state(store, returned)) == ("succeeded", "cancelled")


def test_in_portions(store: Store, clock: StoreClock) -> None:
    ids = {enqueue(store, expires_at=clock.now() + timedelta(seconds=1)) for _ in range(5)}
    clock.advance(2)
    gone = [store.job_expire(2) for _ in range(4)]
    assert [len(portion) for portion in gone] == [2, 2, 1, 0]
    assert {job_id for portion in gone for job_id in portion} == ids


def test_an_expired_job_may_be_retried(store: Store, clock: StoreClock) -> None:
    """J12: who retries it wants it done after its time. It used to be cancelled again by the next sweep."""
    enqueue(store, expires_at=clock.now() + timedelta(seconds=1))
    clock.advance(2)
    (job_id,) = store.job_expire(10)
    store.job_retry([job_id], "ana")
    assert (state(store, job_id), job(store, job_id).expires_at) == ("pending", None)
    assert store.job_expire(10) == []
    assert claim_one(store).job_id == job_id


def test_a_retry_in_time_keeps_the_expiry(store: Store, clock: StoreClock) -> None:
    """J12."""
    job_id = enqueue(store, expires_at=clock.now() + timedelta(seconds=5))
    store.job_cancel([job_id], "ana")
    store.job_retry([job_id], "ana")
    clock.advance(6)
    assert store.job_expire(10) == [job_id]


def test_what_has_expired_is_not_claimed_before_anybody_swept(store: Store, clock: StoreClock) -> None:
    """J12: in one lane and in several, and under a limit; its neighbours behind it are, and the sweep finds it."""
    late = [enqueue(store, expires_at=clock.now() + timedelta(seconds=1), task=task) for task in ("send", "pack")]
    clock.advance(1)
    timely = [enqueue(store, expires_at=clock.now() + timedelta(seconds=9), task=task) for task in ("send", "pack")]
    assert [held.job_id for held in claim(store, tasks=["send"], limit=5)] == [timely[0]]
    last = enqueue(store, task="send")
    assert {held.job_id for held in claim(store, tasks=["send", "pack"], limit=5)} == {timely[1], last}
    store.limit_put(NewLimit(key="few", concurrency_max=9, tasks=("send", "pack")))
    assert claim(store, tasks=["send", "pack"], limit=5) == []
    assert sorted(store.job_expire(10)) == late
