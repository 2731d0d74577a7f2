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
    assert [row.name for row in store.worker_list(20)] == ["late", "here"]


def test_pages_by_id(store: Store) -> None:
    """W3: however many workers there are, one page is read."""
    for number in (9, 7, 8):
        store.worker_seen(worker(number, name=f"w{20 - number}"))
    assert [row.id for row in store.worker_list(10, limit=2)] == [7, 8]
    assert [row.id for row in store.worker_list(10, 8, 2)] == [9]
    assert store.worker_list(10, 9, 2) == []
