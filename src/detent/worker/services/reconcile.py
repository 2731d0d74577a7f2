"""The world is compared with what was applied, by plan (B6), and people hear of runs that did not go well (B9)."""

from __future__ import annotations

from detent.batch.due import begin_due
from detent.batch.telling import tell_of_runs
from detent.model.ids import Ids
from detent.store.contract import Store
from detent.worker.services.service import Service

__all__ = ["reconcile"]

_EVERY = 60.0


def reconcile(store: Store, ids: Ids) -> Service:
    """Once a minute, by one worker: the first look is due five minutes after a run, and an idle worker asks little."""

    def run(_now: float) -> None:
        begin_due(store, ids)
        tell_of_runs(store)

    return Service("reconcile", _EVERY, run, alone=True)
