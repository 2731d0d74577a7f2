"""Enqueues the jobs of schedules."""

from __future__ import annotations

from datetime import datetime

from detent.model.ids import Ids
from detent.model.records import BadRow
from detent.model.service_records import Agenda
from detent.store.contract import Store
from detent.store.row_errors import cause_of
from detent.worker.services.damage_isolation import DamageIsolation
from detent.worker.services.service import Service

__all__ = ["build_schedule_service"]


def _next_tick(agenda: Agenda) -> datetime | None:
    return agenda.schedule_at


def build_schedule_service(store: Store, ids: Ids) -> Service:
    """Return the service: within a second after a tick, by one worker. Two at once would be harmless, but slower."""
    isolation = DamageIsolation("schedules", store)

    def run(now: float) -> None:
        # Imported only when a tick is due: calendars and time zones take memory.
        from detent.schedule.due_ticks import fire_due

        bad: list[BadRow] = []
        fire_due(store, ids, lambda name, error: bad.append(BadRow("schedule", name, cause_of(error), len(bad))))
        if bad:
            isolation.report(bad, now)

    return Service("schedules", 1.0, run, alone=True, at=_next_tick)
