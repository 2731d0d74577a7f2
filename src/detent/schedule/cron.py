"""When the ticks of a schedule are: cron expressions in a time zone.

Over changes of the clocks, as Debian's cron does it: a schedule of fixed times (`30 2 * * *`) ticks once a day, at the
first moment that exists where its own does not, and at the first of two where there are two; one that goes by hours or
minutes (`*/30 * * * *`) ticks in real time.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from detent.errors import InvalidInput

__all__ = ["check_cron", "next_tick", "ticks_after"]

_FIELDS = 5


def check_cron(cron: str, zone: str) -> None:
    """Refuses an expression that is none, that has seconds, or that never comes true; and an unknown zone."""
    _zone(zone)
    if not isinstance(cron, str) or len(cron.split()) != _FIELDS:
        raise InvalidInput("cron", repr(cron)[:200], "five fields: minute, hour, day of month, month, day of week")
    try:
        next(CronSim(cron, datetime(2000, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        raise InvalidInput("cron", f"{cron!r}: {error}", "an expression such as '0 2 * * *'") from None
    except StopIteration:
        raise InvalidInput("cron", f"{cron!r}, which never comes true", "a time that comes") from None


def ticks_after(cron: str, zone: str, after: datetime) -> Iterator[datetime]:
    """Every tick later than `after`, in UTC, each later than the one before."""
    last = after.astimezone(UTC)
    for tick in CronSim(cron, last.astimezone(_zone(zone))):
        # Within an hour that comes twice, a fixed time may be told again; it has been.
        if (at := tick.astimezone(UTC)) > last:
            last = at
            yield at


def next_tick(cron: str, zone: str, after: datetime) -> datetime:
    """The first tick later than `after`."""
    return next(ticks_after(cron, zone, after))


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError, TypeError):
        raise InvalidInput("zone", repr(name)[:200], "a time zone such as 'Europe/Berlin'") from None
