"""job_recover: committed work comes to succeeded, by anyone and however often."""

from __future__ import annotations

from detent.errors import LeaseLost, NotFound
from detent.model.records import Finished
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import claim_one, commit, enqueue, job, succeeded
from tests.contract.refusals import Untouched, refused


def test_committed_comes_to_succeeded(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """C6: recovery after a lost answer is idempotent."""
    job_id = enqueue(store)
    store.job_commit(commit(claim_one(store), result='"r"'))
    clock.advance(1)
    assert store.job_recover([job_id]) == [Finished(job_id, 1)]
    row = job(store, job_id)
    assert (row.state, row.result, row.finished_at) == ("succeeded", '"r"', clock.now())
    assert [each.outcome for each in store.job_executions(job_id)] == ["done"]
    clock.advance(1)
    with untouched():
        assert store.job_recover([job_id]) == [Finished(job_id, 1)]


def test_what_is_not_committed_is_refused(store: Store, untouched: Untouched) -> None:
    """C1: nothing is taken for done that did not happen."""
    done = succeeded(store)
    running = enqueue(store)
    claim_one(store)
    pending = enqueue(store)
    with untouched():
        answers = store.job_recover([done, running, pending])
    assert answers[0] == Finished(done, 1)
    refused(answers[1], LeaseLost, job_id=running, attempt=1)
    refused(answers[2], LeaseLost, job_id=pending, attempt=0)


def test_no_such_job(store: Store, untouched: Untouched) -> None:
    with untouched():
        (answer,) = store.job_recover([10**12])
    refused(answer, NotFound, entity="job", entity_id=str(10**12))
