"""worker_gone: a worker says goodbye."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.refusals import Untouched
from tests.contract.workers.sample_workers import worker


def test_it_leaves_the_list_and_nobody_else_does(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    store.worker_seen(worker(7))
    store.worker_seen(worker(8))
    store.worker_gone(7)
    assert [row.id for row in store.worker_list(10)] == [8]
    with untouched():
        store.worker_gone(7)
