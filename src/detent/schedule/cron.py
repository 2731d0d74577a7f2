"""Cron expressions in a time zone: the ticks of a schedule.

Changes of daylight saving time are handled as in Debian's cron. A schedule of fixed times (`30 2 * * *`) ticks once a
day: at the first existing time if its own does not exist, and at the first of two if it exists twice. A schedule by
hours or minutes (`*/30 * * * *`) ticks in real time.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from detent.errors import InvalidInput

__all__ = ["check_cron", "explain_cron", "next_tick", "ticks_after"]

_FIELDS = 5


def check_cron(cron: str, zone: str) -> None:
    """Check an expression and a zone. `InvalidInput` for an invalid expression, one with seconds, one that never ticks,
    and an unknown zone."""
    _zone(zone)
    if not isinstance(cron, str) or len(cron.split()) != _FIELDS:
        raise InvalidInput("cron", repr(cron)[:200], "five fields: minute, hour, day of month, month, day of week")
    try:
        next(CronSim(cron, datetime(2000, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        raise InvalidInput("cron", f"{cron!r}: {error}", "an expression such as '0 2 * * *'") from None
    except StopIteration:
        raise InvalidInput("cron", f"{cron!r}, which never ticks", "an expression for a date that exists") from None


def ticks_after(cron: str, zone: str, after: datetime) -> Iterator[datetime]:
    """Yield every tick later than `after`, in UTC and in ascending order."""
    last = after.astimezone(UTC)
    for tick in CronSim(cron, last.astimezone(_zone(zone))):
        # In an hour that occurs twice, a fixed time may be yielded twice.
        if (at := tick.astimezone(UTC)) > last:
            last = at
            yield at


def next_tick(cron: str, zone: str, after: datetime) -> datetime:
    """Return the first tick later than `after`."""
    return next(ticks_after(cron, zone, after))


@functools.lru_cache(maxsize=1000)
def explain_cron(cron: str) -> str:
    """Return an expression in words: "At 06:00 on the first day of every month". An invalid one stays as it is."""
    try:
        return CronSim(cron, datetime(2000, 1, 1, tzinfo=UTC)).explain()
    except CronSimError:
        return cron


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError, TypeError):
        raise InvalidInput("zone", repr(name)[:200], "a time zone such as 'Europe/Berlin'") from None
