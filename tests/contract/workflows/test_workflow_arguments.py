"""workflow_arguments: what the steps on record of a workflow may have seen, besides the arguments of its job."""

from __future__ import annotations

from detent.errors import DetentError
from detent.model.copy_records import Fork
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import claim_one, enqueue, new_job
from tests.contract.workflows.sample_workflows import begin, record


def forked(store: Store, job_id: int, payload: str) -> int:
    new_id = enqueue(store, payload=payload)
    item = Fork(job_id=job_id, new_id=new_id, actor="bob", seed="here", keeps_payload=False)
    answer = store.workflow_fork(item)
    assert not isinstance(answer, DetentError), answer
    return new_id


def test_those_of_a_generation_and_of_what_it_was_forked_from(store: Store) -> None:
    held = begin(store, payload='{"to":1}')
    record(store, held)
    assert store.workflow_arguments(held.job_id) == []
    store.workflow_continue(held.job_id, held.attempt, '{"to":2}', "ana")
    assert store.workflow_arguments(held.job_id) == ['{"to":2}']
    record(store, claim_one(store), generation=2)
    fork = forked(store, held.job_id, '{"to":3}')
    again = forked(store, fork, '{"to":4}')
    assert sorted(store.workflow_arguments(fork)) == ['{"to":1}', '{"to":2}']
    assert sorted(store.workflow_arguments(again)) == ['{"to":1}', '{"to":2}', '{"to":3}']


def test_a_plain_job_has_none(store: Store) -> None:
    store.job_enqueue([item := new_job(store)])
    assert store.workflow_arguments(item.id) == store.workflow_arguments(10**9) == []
