"""Closes circuit breakers after a success.

A claim closes the breaker of a limit that it uses. But no claim uses a key under which no job waits any more, and there
may be very many keys. So one worker goes through the open breakers while jobs come and go.
"""

from __future__ import annotations

from datetime import datetime

from detent.model.service_records import Agenda
from detent.store.contract import Store
from detent.worker.services.job_activity import JobActivity
from detent.worker.services.service import Service

__all__ = ["Breakers"]

_EVERY = 10.0
_BATCH = 500
_ROUNDS_MAX = 20


class Breakers:
    """Closes breakers under which an attempt has succeeded, a bounded number at a time."""

    def __init__(self, store: Store, activity: JobActivity) -> None:
        self._store = store
        self._activity = activity
        self._after = ""
        self._looked_at: datetime | None = None

    def service(self) -> Service:
        """Return the service: every ten seconds, by one worker, if a job can have ended since the last time."""
        return Service("breakers", _EVERY, self.run, alone=True, at=self._due_at)

    def run(self, _now: float) -> None:
        """Continue where the last run ended."""
        agenda = self._activity.agenda
        for _ in range(_ROUNDS_MAX):
            following = self._store.limit_close(self._after, _BATCH)
            self._after = following or ""
            if following is None:
                self._looked_at = None if agenda is None else agenda.now
                return

    def _due_at(self, agenda: Agenda) -> datetime | None:
        return self._activity.next_look(agenda, self._looked_at)
