"""Adds up the changes of job counts.

Each transaction that ends jobs inserts its changes as new rows, so that no transaction waits for another. One worker
adds these rows to the counts, so that a query of a count has few rows to read.
"""

from __future__ import annotations

from datetime import datetime

from detent.model.clock import Clock, SystemClock
from detent.model.service_records import Agenda
from detent.store.contract import Store
from detent.worker.services.job_activity import JobActivity
from detent.worker.services.service import Service

__all__ = ["Counts"]

_EVERY = 10.0
_BATCH = 10
"""Small, because each row may stand for hundreds of jobs that are looked up in one transaction."""
_SECONDS_MAX = 5.0
"""Other services wait meanwhile. A time and not a number of rounds, because a round may stand for ten jobs or for
thousands."""


class Counts:
    """Adds changes to the counts, a bounded number in each transaction."""

    def __init__(self, store: Store, activity: JobActivity, clock: Clock | None = None) -> None:
        self._store = store
        self._activity = activity
        self._clock = clock or SystemClock()
        self._looked_at: datetime | None = None

    def service(self) -> Service:
        """Return the service: every ten seconds, by one worker, if a job can have ended since the last time."""
        return Service("counts", _EVERY, self.run, alone=True, at=self._due_at)

    def run(self, _now: float) -> None:
        """Add all changes, or as many as can be added in five seconds."""
        agenda = self._activity.agenda
        deadline = self._clock.monotonic() + _SECONDS_MAX
        while self._clock.monotonic() < deadline:
            if not self._store.counts_fold(_BATCH):
                self._looked_at = None if agenda is None else agenda.now
                return

    def _due_at(self, agenda: Agenda) -> datetime | None:
        return self._activity.next_look(agenda, self._looked_at)
