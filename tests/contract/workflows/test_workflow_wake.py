"""workflow_wake: wake-ups that could not be done at once are done by a service."""

from __future__ import annotations

from detent.model.workflow_records import NewSignal
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import abort, claim, claim_one
from tests.contract.workflows.sample_workflows import parked_for_signal, send


def test_nothing_to_wake(store: Store) -> None:
    parked_for_signal(store)
    assert store.workflow_wake(10) == 0
    assert claim(store) == []


def test_a_bounded_number_at_a_time(store: Store) -> None:
    ids = [parked_for_signal(store) for _ in range(5)]
    items = [NewSignal(job_id=job_id, name="go", payload="1", actor="bob") for job_id in ids]
    store.signal_send(items, apart=True)
    woken = [store.workflow_wake(2) for _ in range(4)]
    assert max(woken) <= 2
    assert {held.job_id for held in claim(store)} == set(ids)
    assert store.workflow_wake(2) == 0


def test_a_workflow_that_was_woken_before_is_left_alone(store: Store) -> None:
    job_id = parked_for_signal(store)
    store.signal_send([NewSignal(job_id=job_id, name="go", payload="1", actor="bob")], apart=True)
    send(store, job_id)
    abort(store, claim_one(store), delay=60)
    store.workflow_wake(10)
    assert claim(store) == []
