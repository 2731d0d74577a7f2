"""mismatch_list: targets that are not what they should be."""

from __future__ import annotations

from detent.model.batch_records import Observed
from detent.store.contract import Store
from tests.contract.batches.sample_batch_runs import applied_run, begun


def test_a_page_at_a_time(store: Store) -> None:
    """B6: each with its ref, what was expected and what was found."""
    made = applied_run(store, ["x", "y", "z"])
    holder, no = begun(store, made.id)
    found = [Observed(n, f"{n}", f"{n}0") for n in (1, 2, 3)]
    store.reconcile_record(holder, made.id, no, 0, 3, 3, found, True)
    rows = store.mismatch_list(made.id)
    assert [(row.ref, row.expected, row.actual) for row in rows] == [
        ("x", "1", "10"),
        ("y", "2", "20"),
        ("z", "3", "30"),
    ]
    assert [row.ref for row in store.mismatch_list(made.id, after_n=1, limit=1)] == ["y"]
    assert store.mismatch_list(made.id + 999) == []
