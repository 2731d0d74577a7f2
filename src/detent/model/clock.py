"""The port for time: aware UTC, to the microsecond.

Everything that needs the time takes a `Clock`. `SystemClock` is the real one. `TurnableClock` stands still until it is
advanced, so tests and simulations decide when time passes. Databases store times as whole microseconds since 1970;
`to_micros` and `from_micros` convert exactly.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from detent.errors import InvalidInput

__all__ = ["Clock", "SystemClock", "TurnableClock", "from_micros", "to_micros"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """The current time, elapsed time, and sleeping."""

    def now(self) -> datetime:
        """Return the current time, aware and in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never decrease; only differences have a meaning."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after that many seconds; at once for zero or less."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            time.sleep(seconds)


class TurnableClock:
    """A clock that stands still until it is advanced, and never goes back. Sleeping advances it."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = _utc(start, "start")
        self._origin = self._now

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return (self._now - self._origin).total_seconds()

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            self.advance(seconds)

    def advance(self, by: float | timedelta) -> datetime:
        """Advance the clock, and return the new time. `InvalidInput` for a negative step."""
        step = by if isinstance(by, timedelta) else timedelta(seconds=by)
        if step < timedelta(0):
            raise InvalidInput("by", f"{step.total_seconds():g} s", "zero or more: a clock never goes back")
        self._now += step
        return self._now

    def set(self, to: datetime) -> None:
        """Advance the clock to that time. `InvalidInput` for an earlier one."""
        target = _utc(to, "to")
        if target < self._now:
            raise InvalidInput("to", target.isoformat(), f"{self._now.isoformat()} or later: a clock never goes back")
        self._now = target


def to_micros(value: datetime, *, field: str) -> int:
    """Return whole microseconds since 1970, exactly. `InvalidInput`, naming `field`, for a naive time, and for one that
    is outside the years 1 to 9999 in UTC."""
    gap = _aware(value, field) - _EPOCH
    return (gap.days * 86_400 + gap.seconds) * 1_000_000 + gap.microseconds


def from_micros(micros: int) -> datetime:
    """Return the time of whole microseconds since 1970. `InvalidInput` outside the years 1 to 9999."""
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise InvalidInput("micros", str(micros), "a time between the years 1 and 9999") from None


def _aware(value: datetime, field: str) -> datetime:
    if not isinstance(value, datetime):
        raise InvalidInput(field, f"a value of type {type(value).__name__}", "an aware datetime")
    if value.utcoffset() is None:
        raise InvalidInput(field, f"the naive time {value.isoformat()}", "an aware datetime, such as datetime.now(UTC)")
    if not 1 < value.year < 9999:
        try:
            value.astimezone(UTC)
        except OverflowError:
            allowed = "a time between the years 1 and 9999 in UTC"
            raise InvalidInput(field, value.isoformat(), allowed) from None
    return value


def _utc(value: datetime, field: str) -> datetime:
    return _aware(value, field).astimezone(UTC)
