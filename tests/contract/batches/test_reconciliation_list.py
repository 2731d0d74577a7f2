"""reconciliation_list: the looks at a run."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.batches.sample_batch_runs import applied_run, begun


def test_the_newest_first(store: Store) -> None:
    made = applied_run(store)
    for _ in range(3):
        holder, no = begun(store, made.id)
        store.reconcile_record(holder, made.id, no, 0, 3, 3, [], True)
    assert [look.no for look in store.reconciliation_list(made.id)] == [3, 2, 1]
    assert [look.no for look in store.reconciliation_list(made.id, limit=1)] == [3]
    assert store.reconciliation_list(made.id + 999) == []
