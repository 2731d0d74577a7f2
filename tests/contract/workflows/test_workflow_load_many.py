"""workflow_load_many: the records of many attempts in one trip, each as `workflow_load` gives it."""

from __future__ import annotations

from detent.errors import LeaseLost
from detent.model.workflow_records import WorkflowHistory
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import abort, claim, enqueue
from tests.contract.refusals import refused
from tests.contract.workflows.sample_workflows import load, record, step


def test_each_as_alone_and_in_order(store: Store) -> None:
    for _ in range(4):
        enqueue(store)
    new, short, long, lost = claim(store)
    record(store, short, "x", version=2)
    store.step_record([step(long, f"s{n}", seq=n) for n in range(5)])
    store.step_record([step(long, "p/in", scope="p"), step(long, "p", kind="scope")])
    store.step_begin([step(long, "once")])
    abort(store, lost)
    asked = [(held.job_id, held.attempt) for held in (long, lost, new, short)]
    first, second, third, fourth = store.workflow_load_many(asked, limit=4)
    refused(second, LeaseLost, job_id=lost.job_id)
    assert first == load(store, long, limit=4)
    assert third == load(store, new)
    assert fourth == load(store, short)
    assert isinstance(first, WorkflowHistory)
    assert first.next is not None


def test_none(store: Store) -> None:
    assert store.workflow_load_many([]) == []
