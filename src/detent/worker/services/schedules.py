"""Ticks of schedules become jobs."""

from __future__ import annotations

from datetime import datetime

from detent.model.ids import Ids
from detent.model.records import BadRow
from detent.model.service_records import Agenda
from detent.store.apart import cause_of
from detent.store.contract import Store
from detent.worker.services.damage_isolation import DamageIsolation
from detent.worker.services.service import Service

__all__ = ["schedules"]


def _next_tick(agenda: Agenda) -> datetime | None:
    return agenda.schedule_at


def schedules(store: Store, ids: Ids) -> Service:
    """Within a second of its time; two at once would only be in each other's way."""
    isolation = DamageIsolation("schedules", store)

    def run(now: float) -> None:
        # Calendars and zones are had only where a tick comes.
        from detent.schedule.firing import fire_due

        bad: list[BadRow] = []
        fire_due(store, ids, lambda name, error: bad.append(BadRow("schedule", name, cause_of(error), len(bad))))
        if bad:
            isolation.tell(bad, now)

    return Service("schedules", 1.0, run, alone=True, at=_next_tick)
