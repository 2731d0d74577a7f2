"""An operation as both databases keep it: what was asked for as JSON, which is read here and never by SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from detent.model.service_records import NewOperation, OperationRow

__all__ = ["asked", "moved_to", "operation_row"]

_FILTER = ("job_state", "task", "queue", "tenant")
_ARGUMENT = ("to_queue", "to_priority")


def asked(item: NewOperation) -> tuple[str, str]:
    """The columns `filter` and `argument`."""
    return _json({name: getattr(item, name) for name in _FILTER}), _json({n: getattr(item, n) for n in _ARGUMENT})


def operation_row(fields: Mapping[str, Any]) -> OperationRow:
    """The record, out of the columns of its table; times are times already."""
    told = msgspec.json.decode(fields["filter"]) | msgspec.json.decode(fields["argument"])
    plain = {name: value for name, value in fields.items() if name not in ("filter", "argument", "looked_at")}
    return OperationRow(**plain, **told, looked=fields["looked_at"])


def moved_to(queue: str | None, priority: int | None) -> str:
    """What the record of a move says about where it went."""
    told = {"queue": queue, "priority": priority}
    return _json({name: value for name, value in told.items() if value is not None})


def _json(value: Mapping[str, Any]) -> str:
    return msgspec.json.encode(value).decode()
