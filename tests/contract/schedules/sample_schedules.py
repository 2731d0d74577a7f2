"""Schedules for tests, and the record of one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from detent.model.service_records import NewSchedule
from detent.store.contract import Store
from detent.testing.stores import START

__all__ = ["FIRST", "line", "schedule"]

FIRST = START + timedelta(hours=1)


def schedule(name: str = "nightly", **overrides: Any) -> NewSchedule:
    """Every hour, the first an hour from the start."""
    fields: dict[str, Any] = {"cron": "0 * * * *", "zone": "UTC", "catch_up": "latest", "next_at": FIRST} | overrides
    return NewSchedule(name=name, task="mail.send", payload='{"to":7}', queue="mail", attempts_max=4, **fields)


def line(store: Store, name: str = "nightly") -> list[tuple[str | None, str, str, str, str | None]]:
    """The record of a schedule."""
    found = store.transitions("schedule", name)
    return [(one.from_state, one.to_state, one.trigger, one.actor, one.reason) for one in found]
