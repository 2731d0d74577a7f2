"""`queue_oldest`: how long the oldest ready job of each queue has been waiting."""

from __future__ import annotations

from datetime import timedelta

from detent.store.contract import Store
from detent.testing.stores import START, StoreClock
from tests.contract.jobs.sample_jobs import enqueue


def test_the_oldest_ready_job_of_each_queue(store: Store, clock: StoreClock) -> None:
    """M1: of every lane of the queue; a job that is due later does not count."""
    assert store.queue_oldest() == []
    enqueue(store, queue="mail", due_at=START + timedelta(hours=1))
    assert store.queue_oldest() == []
    clock.advance(5)
    enqueue(store, queue="mail", tenant="b")
    clock.advance(5)
    enqueue(store, queue="mail", tenant="a", priority=9)
    enqueue(store, queue="files")
    store.queue_pause("files", "ana")
    assert store.queue_oldest() == [
        ("files", START + timedelta(seconds=10)),
        ("mail", START + timedelta(seconds=5)),
    ]
