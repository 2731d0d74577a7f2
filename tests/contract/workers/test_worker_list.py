"""worker_list: who was seen lately."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.workers.sample_workers import worker


def test_only_who_was_seen_within_that_time(store: Store, clock: StoreClock) -> None:
    """W3: a worker that fell silent is not taken for a living one."""
    store.worker_seen(worker(7, name="late"))
    clock.advance(20)
    store.worker_seen(worker(8, name="here"))
    assert [row.name for row in store.worker_list(10)] == ["here"]
    assert [row.name for row in store.worker_list(20)] == ["here", "late"]
