"""`app.operations`: operations on many jobs."""

from __future__ import annotations

from detent.client.engine import Engine
from detent.client.listing import LIST_MAX, ListPage, check_limit
from detent.client.moves import check_id
from detent.client.operation import Operation
from detent.errors import InvalidInput, NotFound

__all__ = ["Operations"]

_STATES = ("running", "done", "cancelled")


class Operations:
    """Operations on many jobs, as `app.jobs.where(...)` starts them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def get(self, operation_id: int | str) -> Operation:
        """Return the handle of an operation. `NotFound`."""
        row = self._engine.store.operation_get(check_id(operation_id, "operation id"))
        if row is None:
            raise NotFound("operation", str(operation_id))
        return Operation(row, self._engine)

    def list(self, *, state: str | None = None, limit: int = 100, after: str | None = None) -> ListPage[Operation]:
        """List operations, the newest first. `.next` of the list is the `after` of the next page. `InvalidInput`."""
        if state is not None and state not in _STATES:
            raise InvalidInput("state", repr(state)[:80], ", ".join(_STATES))
        most = check_limit(limit)
        below = None if after is None else check_id(after, "after")
        rows = self._engine.store.operation_list(state, most + 1 if below is None and most < LIST_MAX else LIST_MAX)
        left = [row for row in rows if below is None or row.id < below]
        found = [Operation(row, self._engine) for row in left[:most]]
        return ListPage(found, str(found[-1].id) if len(left) > most else None)
