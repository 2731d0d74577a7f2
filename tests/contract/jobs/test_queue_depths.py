"""`queue_depths`: jobs by queue and state."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import claim, enqueue, succeeded


def test_jobs_by_queue_and_state(store: Store) -> None:
    """M1: tenants are added up."""
    succeeded(store, queue="mail", tenant="a")
    succeeded(store, queue="mail", tenant="b")
    enqueue(store, queue="mail")
    claim(store)
    enqueue(store, queue="mail", tenant="a")
    enqueue(store, queue="mail", tenant="b", priority=5)
    enqueue(store, queue="files")
    found = {(one.queue, one.state): one.jobs for one in store.queue_depths()}
    assert found == {
        ("mail", "succeeded"): 2,
        ("mail", "running"): 1,
        ("mail", "pending"): 2,
        ("files", "pending"): 1,
    }
