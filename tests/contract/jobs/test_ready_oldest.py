"""`ready_oldest`: which job of each queue and task has been waiting longest."""

from __future__ import annotations

from datetime import timedelta

from detent.model.service_records import OldestReady
from detent.store.contract import Store
from detent.testing.stores import START, StoreClock
from tests.contract.jobs.sample_jobs import enqueue


def test_the_oldest_ready_job_of_each_queue_and_task(store: Store, clock: StoreClock) -> None:
    """M1: of every lane; a job that is due later does not count, and a paused queue does."""
    assert store.ready_oldest() == []
    enqueue(store, queue="mail", task="send", due_at=START + timedelta(hours=1))
    assert store.ready_oldest() == []
    clock.advance(5)
    of_b = enqueue(store, queue="mail", task="send", tenant="b")
    clock.advance(5)
    enqueue(store, queue="mail", task="send", tenant="a", priority=9)
    enqueue(store, queue="mail", task="send", tenant="b")
    read = enqueue(store, queue="mail", task="read")
    filed = enqueue(store, queue="files", task="file")
    enqueue(store, queue="files", task="file")
    store.queue_pause("files", "ana")
    assert store.ready_oldest() == [
        OldestReady("files", "file", filed, START + timedelta(seconds=10)),
        OldestReady("mail", "read", read, START + timedelta(seconds=10)),
        OldestReady("mail", "send", of_b, START + timedelta(seconds=5)),
    ]
