"""What an operation was asked to do, as both databases store it: JSON that only this module reads, never SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from detent.model.service_records import NewOperation, OperationRow

__all__ = ["COLUMNS", "asked", "metadata_text", "operation_row", "wanted_metadata"]

COLUMNS = (
    *("id", "action", "state", "filter", "argument", "actor", "reason", "until_id", "after_id", "looked_at"),
    *("changed", "refused", "created_at", "finished_at"),
)
"""The columns of the table of operations."""
_FILTER = ("job_state", "task", "queue", "tenant")
_MORE = ("key", "correlation_id", "run_id", "worker", "error", "metadata", "since", "until")
_ARGUMENT = ("to_queue", "to_priority")
_NO_UNDO = {"undo": False}


def asked(item: NewOperation) -> tuple[str, str]:
    """Return the values of the columns `filter` and `argument`."""
    chosen = {name: getattr(item, name) for name in _FILTER}
    chosen |= {name: value for name in _MORE if (value := getattr(item, name)) is not None}
    argument = {name: getattr(item, name) for name in _ARGUMENT}
    return _json(chosen), _json(argument if item.undo else argument | _NO_UNDO)


def operation_row(fields: Mapping[str, Any]) -> OperationRow:
    """Return an operation from the columns of its table. Times are `datetime` already."""
    told = msgspec.json.decode(fields["filter"]) | msgspec.json.decode(fields["argument"])
    for name in {"since", "until"} & told.keys():
        told[name] = datetime.fromisoformat(told[name])
    plain = {name: value for name, value in fields.items() if name not in ("filter", "argument", "looked_at")}
    return OperationRow(**plain, **told, looked=fields["looked_at"])


def metadata_text(wanted: Sequence[tuple[str, str]]) -> str | None:
    """Return the filter by metadata as an operation stores it."""
    return _json({name: msgspec.Raw(values.encode()) for name, values in wanted}) if wanted else None


def wanted_metadata(text: str | None) -> tuple[tuple[str, str], ...]:
    """Return each name with the JSON array of the values that fit."""
    found = {} if text is None else msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    return tuple((name, bytes(values).decode()) for name, values in found.items())


def _json(value: Mapping[str, Any]) -> str:
    return msgspec.json.encode(value).decode()
