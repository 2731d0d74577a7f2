"""key_expire: keys whose time to live is over go, a bounded number at a time."""

from __future__ import annotations

from detent.model.records import Enqueued
from detent.store.contract import Store
from detent.testing.stores import StoreClock, dump
from tests.contract.jobs.sample_jobs import enqueue, new_job


def test_expired_keys_go_in_small_portions(store: Store, store_url: str, clock: StoreClock) -> None:
    """J3: one that is not over, and one that lasts for ever, stay."""
    for n in range(5):
        enqueue(store, key=f"short {n}", key_ttl=10.0)
    kept = [enqueue(store, key="long", key_ttl=100.0), enqueue(store, key="for ever")]
    assert store.key_expire(100) == 0
    clock.advance(10)
    assert [store.key_expire(2) for _ in range(4)] == [2, 2, 1, 0]
    assert len(dump(store_url)["job_key"]) == 2
    again = store.job_enqueue([new_job(store, key=key) for key in ("long", "for ever")])
    assert again == [Enqueued(job_id, False) for job_id in kept]
