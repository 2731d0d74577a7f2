"""Starts planned reconciliations: applied targets are compared with their real state (B6)."""

from __future__ import annotations

from detent.batch.due_reconciliations import begin_due
from detent.model.batch_records import BatchRunRow
from detent.model.ids import Ids
from detent.model.records import BadRow
from detent.store.contract import Store
from detent.store.row_errors import cause_of
from detent.worker.services.damage_isolation import DamageIsolation
from detent.worker.services.service import Service

__all__ = ["Reconciliation"]

_EVERY = 60.0


class Reconciliation:
    """Starts the reconciliations that are due."""

    def __init__(self, store: Store, ids: Ids) -> None:
        self._store = store
        self._ids = ids
        self._isolation = DamageIsolation("reconcile", store)

    def service(self) -> Service:
        """Return the service: at most once a minute, by one worker. The first one is due five minutes after a run."""
        return Service("reconcile", _EVERY, self.run, alone=True, at=lambda agenda: agenda.reconcile_at)

    def run(self, now: float) -> None:
        """Start what is due. Harmless if two workers do it at once."""
        bad: list[BadRow] = []

        def set_aside(row: BatchRunRow, error: Exception) -> None:
            bad.append(BadRow("batch_run", str(row.id), cause_of(error), row.id))

        begin_due(self._store, self._ids, set_aside)
        if bad:
            self._isolation.report(bad, now)
