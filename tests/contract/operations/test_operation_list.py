"""operation_list: the newest first."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.operations.sample_operations import finished, operation


def test_by_state_and_the_newest_first(store: Store) -> None:
    """J14"""
    ids = [store.operation_start(operation(store)).id for _ in range(3)]
    finished(store, ids[1])
    assert [row.id for row in store.operation_list()] == ids[::-1]
    assert [row.id for row in store.operation_list("running")] == [ids[2], ids[0]]
    assert [row.id for row in store.operation_list(limit=1)] == [ids[2]]
    assert [row.id for row in store.operation_list(None, 1, ids[2])] == [ids[1]]
    assert [row.id for row in store.operation_list("running", 10, ids[2])] == [ids[0]]
    assert store.operation_list("done", 10, ids[1]) == []
