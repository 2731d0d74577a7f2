"""key_forget: keys that last for ever go after their job, for those who ask for it."""

from __future__ import annotations

from detent.model.records import Enqueued
from detent.model.service_records import KeysForgotten
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import enqueue, new_job, succeeded


def test_keys_of_jobs_that_are_gone_go(store: Store, clock: StoreClock) -> None:
    """J3: those of jobs that are there stay, and so does one with a time to live or until the first claim."""
    gone = [succeeded(store, key=f"k{n}", tenant=tenant) for n in range(2) for tenant in ("", "ana")]
    succeeded(store, key="k9", key_ttl=1e6)
    clock.advance(1)
    store.job_prune(clock.now(), None, 100, "ana")
    there = enqueue(store, key="m")
    pending = enqueue(store, key="n", unique_pending=True)
    assert store.key_forget(("", ""), 100) == KeysForgotten(len(gone), None)
    assert store.key_forget(("", ""), 100) == KeysForgotten(0, None)
    answers = store.job_enqueue([new_job(store, key=key) for key in ("m", "n")])
    assert answers == [Enqueued(there, False), Enqueued(pending, False)]
    (made,) = store.job_enqueue([new_job(store, key="k0")])
    assert isinstance(made, Enqueued)
    assert made.created


def test_in_small_portions(store: Store, clock: StoreClock) -> None:
    """J3: each call looks at a bounded number of keys and says where to go on."""
    for n in range(5):
        succeeded(store, key=f"k{n}", tenant="ana" if n % 2 else "")
    clock.advance(1)
    store.job_prune(clock.now(), None, 100, "ana")
    after, found = ("", ""), []
    while True:
        went = store.key_forget(after, 2)
        found.append(went.keys)
        if went.next is None:
            break
        assert went.next > after
        after = went.next
    assert found == [2, 2, 1]
