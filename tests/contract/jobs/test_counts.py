"""counts: how many jobs of each queue are in each state."""

from __future__ import annotations

from datetime import timedelta

from detent.model.records import Count
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import claim, enqueue, finish
from tests.contract.refusals import Untouched


def test_by_tenant_queue_and_state(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """M1: waiting and ready are both pending."""
    for _ in range(3):
        enqueue(store, queue="mail")
    enqueue(store, queue="mail", due_at=clock.now() + timedelta(hours=1))
    enqueue(store, tenant="acme", task="later")
    held = claim(store, limit=2)
    finish(store, held[0])
    with untouched():
        found = store.counts()
    assert sorted(found, key=lambda count: (count.tenant, count.queue, count.state)) == [
        Count("", "mail", "pending", 2),
        Count("", "mail", "running", 1),
        Count("", "mail", "succeeded", 1),
        Count("acme", "default", "pending", 1),
    ]


def test_of_nothing(store: Store) -> None:
    assert store.counts() == []


def test_of_one_tenant(store: Store) -> None:
    enqueue(store, tenant="acme")
    enqueue(store)
    finish(store, claim(store, limit=1)[0])
    assert store.counts("acme") == [one for one in store.counts() if one.tenant == "acme"]
    assert len(store.counts("acme")) == 1
    assert store.counts("nobody") == []
