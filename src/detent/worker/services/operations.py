"""Operations on many jobs go on by themselves."""

from __future__ import annotations

from detent.model.records import BadRow
from detent.model.service_records import ACTIONS, OperationRow
from detent.store.apart import cause_of, is_of_one_row
from detent.store.contract import Store
from detent.worker.services.damage_isolation import DamageIsolation
from detent.worker.services.service import Service

__all__ = ["operations"]

_PORTION = 500
_STEPS_MAX = 20
_AT_ONCE = 10


def operations(store: Store) -> Service:
    """A few portions of each a second, so that the queue is not disturbed."""
    isolation = DamageIsolation("operations", store)

    def run(now: float) -> None:
        for row in store.operation_list("running", _AT_ONCE):
            if row.action not in ACTIONS:
                # No job is to blame: it would be refused by every one of them.
                cause = f"action {row.action} is not known"
                isolation.tell([BadRow("operation", str(row.id), cause, row.id)], now)
                continue
            try:
                _carry_on(store, row, isolation, now)
            except Exception as error:
                if not is_of_one_row(error):
                    raise
                isolation.tell([BadRow("operation", str(row.id), cause_of(error), row.id)], now)

    return Service("operations", 1.0, run, alone=True, at=lambda agenda: agenda.now if agenda.operations else None)


def _carry_on(store: Store, row: OperationRow, isolation: DamageIsolation, now: float) -> None:
    """Take a few portions. If a job makes its portion fail, halve the portion until that job is alone in it; then pass
    over it, which counts it as refused."""
    portion = _PORTION
    for _ in range(_STEPS_MAX):
        try:
            stepped = store.operation_step(row.id, portion)
        except Exception as error:
            if not is_of_one_row(error):
                raise
            if portion > 1:
                portion //= 2
                continue
            stepped = store.operation_skip(row.id)
            if not isinstance(stepped, Exception):
                bad = BadRow("job", str(stepped.after_id), f"operation {row.id}: {cause_of(error)}", stepped.after_id)
                isolation.tell([bad], now)
        if isinstance(stepped, Exception) or stepped.state != "running":
            return
        portion = min(_PORTION, portion * 2)
