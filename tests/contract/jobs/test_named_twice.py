"""One entity named twice in a call: the second time is answered as if it had been asked in the next call."""

from __future__ import annotations

from detent.errors import AlreadyCommitted, LeaseLost
from detent.model.records import Abort, Aborted, Cancelled, Finish, Finished, Moved, Renewal, Started
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import LEASE, claim_one, commit, enqueue, job, quarantined
from tests.contract.refusals import refused


def test_finish(store: Store) -> None:
    """L3: one end, one row, and the first result stands."""
    job_id = enqueue(store)
    claim_one(store)
    answers = store.job_finish([Finish(job_id, 1, "1"), Finish(job_id, 1, "2"), Finish(job_id, 2)], "ana")
    assert answers[:2] == [Finished(job_id, 1)] * 2
    refused(answers[2], LeaseLost, job_id=job_id, attempt=2)
    assert job(store, job_id).result == "1"
    assert len(store.job_executions(job_id)) == 1


def test_abort(store: Store) -> None:
    """L3"""
    job_id = enqueue(store)
    claim_one(store)
    same = Abort(job_id=job_id, attempt=1, outcome="error")
    answers = store.job_abort([same, same, Abort(job_id=job_id, attempt=1, outcome="crashed")], "ana")
    assert answers[:2] == [Aborted(job_id, 1, "error", "pending")] * 2
    refused(answers[2], LeaseLost, job_id=job_id, attempt=1)


def test_start_and_renew(store: Store) -> None:
    job_id = enqueue(store)
    lease_id = store.ids_reserve(1)
    claim_one(store, lease_id=lease_id)
    assert store.job_start([(job_id, 1), (job_id, 1)]) == [Started(job_id, 1)] * 2
    assert store.lease_renew([lease_id, lease_id], LEASE) == [Renewal(lease_id, True)] * 2


def test_cancel_retry_and_discard(store: Store) -> None:
    """L3: one line on record for each change, none for the repetition."""
    job_id = quarantined(store)
    assert store.job_discard([job_id, job_id], "ana") == [
        Moved(str(job_id), "cancelled", True),
        Moved(str(job_id), "cancelled", False),
    ]
    assert store.job_retry([job_id, job_id], "ana") == [
        Moved(str(job_id), "pending", True),
        Moved(str(job_id), "pending", False),
    ]
    assert store.job_cancel([job_id, job_id], "ana") == [Cancelled(job_id, "cancelled")] * 2
    triggers = [line.trigger for line in store.transitions("job", str(job_id)) if line.rank == 90]
    assert triggers == ["discard", "retry", "cancel"]


def test_recover(store: Store) -> None:
    job_id = enqueue(store)
    held = claim_one(store)
    store.job_commit(commit(held))
    assert store.job_recover([job_id, job_id]) == [Finished(job_id, 1)] * 2
    refused(store.job_commit(commit(held)), AlreadyCommitted, job_id=job_id)


def test_get(store: Store) -> None:
    job_id = enqueue(store)
    assert store.job_get([job_id, job_id]) == [job(store, job_id)] * 2
