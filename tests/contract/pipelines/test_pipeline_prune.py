"""pipeline_prune: what is staged of runs that ended goes soon, the runs later."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.pipelines.sample_pipeline_runs import completed, fanned_out, partition, run_of

RECORDS = dict.fromkeys("abc", "1")


def test_records_first_then_runs(store: Store, clock: StoreClock) -> None:
    """J16: in small portions; the run on which the watermark stands is kept, and one that has not ended too."""
    old = completed(store, RECORDS)
    clock.advance(60)
    newer = completed(store, RECORDS)
    clock.advance(60)
    active = fanned_out(store)
    now, long_ago = clock.now(), old.created_at
    assert store.pipeline_prune(now, long_ago, 2).rows == 2
    assert store.pipeline_prune(now, long_ago, 100).rows == 4
    assert run_of(store, old.id).consolidated == 3
    pruned = store.pipeline_prune(now, now, 100)
    assert (pruned.rows, pruned.more) == (3, True)
    assert not store.pipeline_prune(now, now, 100).more
    assert store.pipeline_get(old.id) is None
    assert store.partition_list(old.id) == []
    assert run_of(store, newer.id).state == "completed"
    assert partition(store, active.id).state == "pending"
