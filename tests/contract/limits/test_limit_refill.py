"""limit_refill: in which time the quickest bucket on some tasks and queues fills up."""

from __future__ import annotations

import math

from detent.model.limit_records import NewLimit
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import claim, enqueue
from tests.contract.refusals import Untouched


def test_the_quickest_bucket_counts(store: Store, untouched: Untouched) -> None:
    """J12: a waiting worker asks for this number, however many limits and keys there are."""
    store.limit_put(NewLimit(key="shop", rate=2, per=4, burst=3, tasks=("mail.send", "a")))
    store.limit_put(NewLimit(key="queue:slow", rate=1, burst=1, queues=("slow",)))
    store.limit_put(NewLimit(key="b", concurrency_max=1, tasks=("b",)))
    enqueue(store, limit_key="shop:7")
    claim(store)
    with untouched():
        assert store.limit_refill(None, ["a", "b"]) == 1.0
        assert store.limit_refill(("default",), ["a", "b"]) == 6.0
        assert store.limit_refill((), ["b"]) == math.inf
        assert store.limit_refill((), ["c"]) is None
        assert store.limit_refill(None, []) == 1.0
