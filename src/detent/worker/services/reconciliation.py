"""Applied targets are compared with the world by plan (B6)."""

from __future__ import annotations

from detent.batch.due import begin_due
from detent.model.batch_records import BatchRunRow
from detent.model.ids import Ids
from detent.model.records import BadRow
from detent.store.apart import cause_of
from detent.store.contract import Store
from detent.worker.services.damage_isolation import DamageIsolation
from detent.worker.services.service import Service

__all__ = ["Reconcile"]

_EVERY = 60.0


class Reconcile:
    """Begins the reconciliations that are due."""

    def __init__(self, store: Store, ids: Ids) -> None:
        self._store = store
        self._ids = ids
        self._isolation = DamageIsolation("reconcile", store)

    def service(self) -> Service:
        """Once a minute at most, by one worker: the first one is due five minutes after a run."""
        return Service("reconcile", _EVERY, self.run, alone=True, at=lambda agenda: agenda.reconcile_at)

    def run(self, now: float) -> None:
        """Harmless when two workers do it at once."""
        bad: list[BadRow] = []

        def set_aside(row: BatchRunRow, error: Exception) -> None:
            bad.append(BadRow("batch_run", str(row.id), cause_of(error), row.id))

        begin_due(self._store, self._ids, set_aside)
        if bad:
            self._isolation.tell(bad, now)
