"""The changes of the clocks in 2026, and the ticks around them as the documentation promises them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

__all__ = ["CHANGES", "Change"]


class Change(NamedTuple):
    """A fixed time of day on the day before, the day of and the day after a change; ticks in UTC."""

    zone: str
    cron: str
    start: datetime
    ticks: tuple[str, str, str]

    def __str__(self) -> str:
        return f"{self.zone}, {self.start:%B}"


def _from(month: int, day: int, hour: int) -> datetime:
    return datetime(2026, month, day, hour, tzinfo=UTC)


CHANGES = (
    Change(
        "America/New_York",  # 8 March: 02:00 becomes 03:00
        "30 2 * * *",
        _from(3, 7, 0),
        ("2026-03-07T07:30:00", "2026-03-08T07:00:00", "2026-03-09T06:30:00"),
    ),
    Change(
        "Europe/Berlin",  # 29 March: 02:00 becomes 03:00
        "30 2 * * *",
        _from(3, 28, 0),
        ("2026-03-28T01:30:00", "2026-03-29T01:00:00", "2026-03-30T00:30:00"),
    ),
    Change(
        "Asia/Kolkata",  # no change, on the day on which Berlin has one
        "30 2 * * *",
        _from(3, 28, 0),
        ("2026-03-28T21:00:00", "2026-03-29T21:00:00", "2026-03-30T21:00:00"),
    ),
    Change(
        "Australia/Lord_Howe",  # 5 April: 02:00 becomes 01:30
        "45 1 * * *",
        _from(4, 3, 12),
        ("2026-04-03T14:45:00", "2026-04-04T14:45:00", "2026-04-05T15:15:00"),
    ),
    Change(
        "Australia/Lord_Howe",  # 4 October: 02:00 becomes 02:30
        "15 2 * * *",
        _from(10, 2, 12),
        ("2026-10-02T15:45:00", "2026-10-03T15:30:00", "2026-10-04T15:15:00"),
    ),
    Change(
        "Europe/Berlin",  # 25 October: 03:00 becomes 02:00
        "30 2 * * *",
        _from(10, 24, 0),
        ("2026-10-24T00:30:00", "2026-10-25T00:30:00", "2026-10-26T01:30:00"),
    ),
    Change(
        "America/New_York",  # 1 November: 02:00 becomes 01:00
        "30 1 * * *",
        _from(10, 31, 0),
        ("2026-10-31T05:30:00", "2026-11-01T05:30:00", "2026-11-02T06:30:00"),
    ),
    Change(
        "Asia/Kolkata",  # no change, on the day on which New York has one
        "30 2 * * *",
        _from(10, 31, 0),
        ("2026-10-31T21:00:00", "2026-11-01T21:00:00", "2026-11-02T21:00:00"),
    ),
)
