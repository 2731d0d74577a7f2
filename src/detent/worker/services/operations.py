"""Operations on many jobs go on by themselves."""

from __future__ import annotations

from detent.store.contract import Store
from detent.worker.services.service import Service

__all__ = ["operations"]

_PORTION = 500
_STEPS_MAX = 20
_AT_ONCE = 10


def operations(store: Store) -> Service:
    """A few portions of each a second, so that the queue is not disturbed."""

    def run(_now: float) -> None:
        for row in store.operation_list("running", _AT_ONCE):
            for _ in range(_STEPS_MAX):
                stepped = store.operation_step(row.id, _PORTION)
                if isinstance(stepped, Exception) or stepped.state != "running":
                    break

    return Service("operations", 1.0, run, alone=True, at=lambda agenda: agenda.now if agenda.operations else None)
