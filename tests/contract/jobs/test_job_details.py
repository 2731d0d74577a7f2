"""job_details: what lists show of jobs beside their rows."""

from __future__ import annotations

from detent.model.records import JobDetails
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import abort, claim_one, enqueue, event, finish
from tests.contract.refusals import Untouched


def test_key_worker_and_progress(store: Store, untouched: Untouched) -> None:
    done = enqueue(store, key="order-17")
    finish(store, claim_one(store))
    running = enqueue(store)
    held = claim_one(store, worker="bob")
    for payload in ('{"done":1,"total":90}', '{"done":30,"total":90}', '{"size":7}'):
        store.event_append([event(held, payload=payload)])
    waiting = enqueue(store)
    with untouched():
        assert store.job_details([waiting, running, done, 10**6]) == [
            JobDetails(done, "order-17", "ana", None),
            JobDetails(running, None, "bob", '{"done":30,"total":90}'),
            JobDetails(waiting, None, None, None),
        ]


def test_progress_is_that_of_the_current_attempt(store: Store) -> None:
    job_id = enqueue(store)
    held = claim_one(store)
    store.event_append([event(held, payload='{"done":1}')])
    abort(store, held, error="boom")
    claim_one(store)
    (found,) = store.job_details([job_id])
    assert found.progress is None


def test_status_is_the_last_one_of_any_attempt(store: Store) -> None:
    job_id = enqueue(store)
    held = claim_one(store)
    for payload in ('{"at":1}', '{"at":2}'):
        store.event_append([event(held, message="status", payload=payload)])
    abort(store, held, error="boom")
    store.event_append([event(claim_one(store), payload='{"at":3}')])
    (found,) = store.job_details([job_id])
    assert found.status == '{"at":2}'
