"""The world is compared with what was applied, by plan (B6), and people hear of runs that did not go well (B9)."""

from __future__ import annotations

from datetime import datetime, timedelta

from detent.batch.due import begin_due
from detent.batch.telling import tell_of_runs
from detent.model.ids import Ids
from detent.model.service_records import Agenda
from detent.store.contract import Store
from detent.worker.services.service import Service
from detent.worker.services.stir import Stir

__all__ = ["Reconcile"]

_EVERY = 60.0
_AT_LEAST_EVERY = timedelta(minutes=5)
"""A run may come to rest without any job of it being run: by the hand of a person."""


class Reconcile:
    """Begins the looks that are due, and tells of runs, where some job has ended since it last did."""

    def __init__(self, store: Store, ids: Ids, stir: Stir) -> None:
        self._store = store
        self._ids = ids
        self._stir = stir
        self._told_at: datetime | None = None

    def service(self) -> Service:
        """Once a minute at most, by one worker: the first look is due five minutes after a run."""
        return Service("reconcile", _EVERY, self.run, alone=True, at=self._next)

    def _next(self, agenda: Agenda) -> datetime:
        again_at = agenda.now if self._told_at is None else self._told_at + _AT_LEAST_EVERY
        soon = (agenda.reconcile_at, self._stir.look_at(agenda, self._told_at))
        return min([again_at, *(at for at in soon if at is not None)])

    def run(self, _now: float) -> None:
        """Both, each harmless when done twice."""
        agenda = self._stir.agenda
        begin_due(self._store, self._ids)
        tell_of_runs(self._store)
        self._told_at = None if agenda is None else agenda.now
