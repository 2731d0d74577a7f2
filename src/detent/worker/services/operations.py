"""Carries out operations on many jobs."""

from __future__ import annotations

from detent.model.records import BadRow
from detent.model.service_records import ACTIONS, OperationRow
from detent.store.contract import Store
from detent.store.row_errors import cause_of, is_of_one_row
from detent.worker.services.damage_isolation import DamageIsolation
from detent.worker.services.service import Service

__all__ = ["build_operation_service"]

_PORTION = 500
_STEPS_MAX = 20
_AT_ONCE = 10


def build_operation_service(store: Store) -> Service:
    """Return the service: a few portions of each operation a second, so that the queue is not disturbed."""
    isolation = DamageIsolation("operations", store)

    def run(now: float) -> None:
        for row in store.operation_list("running", _AT_ONCE):
            if row.action not in ACTIONS:
                # No job is the cause: the operation would fail for each of them.
                cause = f"action {row.action} is not known"
                isolation.report([BadRow("operation", str(row.id), cause, row.id)], now)
                continue
            try:
                _take_portions(store, row, isolation, now)
            except Exception as error:
                if not is_of_one_row(error):
                    raise
                isolation.report([BadRow("operation", str(row.id), cause_of(error), row.id)], now)

    return Service("operations", 1.0, run, alone=True, at=lambda agenda: agenda.now if agenda.operations else None)


def _take_portions(store: Store, row: OperationRow, isolation: DamageIsolation, now: float) -> None:
    """Carry out a few portions. If a job makes its portion fail, halve the portion until it holds only that job; then
    skip the job, which counts it as refused."""
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
                isolation.report([bad], now)
        if isinstance(stepped, Exception) or stepped.state != "running":
            return
        portion = min(_PORTION, portion * 2)
