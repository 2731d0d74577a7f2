"""worker_get: one worker, alive or silent."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.workers.sample_workers import worker


def test_a_worker_by_its_id(store: Store, clock: StoreClock) -> None:
    """W3: also one that fell silent, until it is forgotten."""
    store.worker_seen(worker(7))
    clock.advance(3600)
    found = store.worker_get(7)
    assert found is not None
    assert (found.name, found.queues, found.drain_requested_at) == ("ana", ("mail", 'q"\\ü'), None)
    assert store.worker_get(8) is None
