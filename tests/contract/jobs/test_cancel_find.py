"""cancel_find: a worker asks which of the attempts it runs are to be cancelled."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import abort, claim, commit, enqueue, finish
from tests.contract.refusals import Untouched


def test_running_attempts_with_a_request_are_found(store: Store, untouched: Untouched) -> None:
    """J8: by job and attempt, in the order of the jobs; nothing else is, and nothing is changed."""
    for _ in range(4):
        enqueue(store)
    pending = enqueue(store)
    first, second, third, committed = claim(store, limit=4)
    store.job_commit(commit(committed))
    store.job_cancel([first.job_id, third.job_id, committed.job_id, pending], "ana")
    every = [(held.job_id, held.attempt) for held in (third, second, first, committed)]
    with untouched():
        assert store.cancel_find([*every, (pending, 0), (pending, 1)]) == [(first.job_id, 1), (third.job_id, 1)]
        assert store.cancel_find([]) == []


def test_a_request_is_for_one_attempt(store: Store) -> None:
    """J8: a job that was cancelled and retried used to be taken for cancelled still."""
    enqueue(store)
    (held,) = claim(store)
    store.job_cancel([held.job_id], "ana")
    abort(store, held, "cancelled")
    assert store.cancel_find([(held.job_id, 1)]) == []
    store.job_retry([held.job_id], "ana")
    (again,) = claim(store)
    assert store.cancel_find([(held.job_id, 1), (held.job_id, 2)]) == []
    store.job_cancel([held.job_id], "ana")
    assert store.cancel_find([(held.job_id, 1), (held.job_id, 2)]) == [(held.job_id, 2)]
    finish(store, again)
    assert store.cancel_find([(held.job_id, 2)]) == []
