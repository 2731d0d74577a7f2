"""operation_get: how far it is."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.operations.sample_operations import operation


def test_as_it_stands(store: Store) -> None:
    """J14"""
    row = store.operation_start(operation(store))
    assert store.operation_get(row.id) == row
    assert store.operation_get(row.id + 1) is None
