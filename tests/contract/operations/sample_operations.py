"""Operations for tests, and a call that steps one to its end."""

from __future__ import annotations

from typing import Any

from detent.model.service_records import NewOperation, OperationRow
from detent.store.contract import Store

__all__ = ["finished", "operation"]


def operation(store: Store, action: Any = "retry", **overrides: Any) -> NewOperation:
    """An operation as a client would describe it."""
    return NewOperation(id=store.ids_reserve(1), action=action, actor="ana", **overrides)


def finished(store: Store, operation_id: int, limit: int = 2) -> OperationRow:
    """Step until it has ended."""
    while True:
        row = store.operation_step(operation_id, limit)
        assert isinstance(row, OperationRow)
        if row.state != "running":
            return row
