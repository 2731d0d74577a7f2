"""Backoff: how long to wait before the next attempt (J9, B5)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from detent.errors import InvalidSetting
from detent.model.clock import to_micros

__all__ = ["Retry", "retry_after", "throttle_delay"]

_RETRIES_MAX = 10_000
_CAP_MAX = 365 * 86_400.0
_RETRY_AFTER_MAX = 86_400.0
_THROTTLE_FIRST = 16.0
_THROTTLE_CAP = 64.0
_SECONDS = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?")


@dataclass(frozen=True, slots=True)
class Retry:
    """The retry policy of a task: `Retry(3)` means 3 retries, so 4 attempts; retries start after about 2, 4 and 8 s.

    The delay grows by `factor` from `base` up to `cap` seconds, and varies by ±`jitter` (a share) without exceeding the
    cap. An error is retried if it is an instance of `on` and not of `fatal`. `InvalidSetting` for values out of range.
    """

    retries: int = 3
    base: float = 2.0
    factor: float = 2.0
    cap: float = 64.0
    jitter: float = 0.2
    on: tuple[type[BaseException], ...] = (Exception,)
    fatal: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        if type(self.retries) is not int or not 0 <= self.retries <= _RETRIES_MAX:
            raise InvalidSetting("retries", repr(self.retries), f"a whole number from 0 to {_RETRIES_MAX}")
        _check_number("base", self.base, 0, _CAP_MAX)
        _check_number("factor", self.factor, 1, 1_000)
        _check_number("cap", self.cap, 0, _CAP_MAX)
        _check_number("jitter", self.jitter, 0, 1)
        _check_types("on", self.on)
        _check_types("fatal", self.fatal)

    @property
    def attempts_max(self) -> int:
        """Number of attempts: the first and its retries."""
        return self.retries + 1

    def delay(self, attempt: int, random: float) -> float:
        """Return the seconds to wait after an attempt (counted from 1) has failed; `random` in [0, 1) decides the
        jitter."""
        assert attempt >= 1, f"attempts are counted from 1, not {attempt}"
        wait = min(self.base, self.cap)
        for _ in range(attempt - 1):
            grown = min(wait * self.factor, self.cap)
            if grown == wait:
                break
            wait = grown
        return max(0.0, min(wait * (1 + self.jitter * (2 * random - 1)), self.cap))

    def covers(self, error: BaseException) -> bool:
        """Whether this error is retried."""
        return isinstance(error, self.on) and not isinstance(error, self.fatal)


def retry_after(header: str, now: datetime) -> float | None:
    """Return the delay of a `Retry-After` header, which is seconds or an HTTP date, from 0 to a day; None if it is
    neither."""
    value = header.strip()
    if _SECONDS.fullmatch(value):
        return min(float(value), _RETRY_AFTER_MAX)
    from email.utils import parsedate_to_datetime

    now_micros = to_micros(now, field="now")
    try:
        date = parsedate_to_datetime(value)
        # The parser returns a naive time for "-0000", which means UTC.
        date_micros = to_micros(date if date.tzinfo else date.replace(tzinfo=UTC), field="header")
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(max((date_micros - now_micros) / 1_000_000, 0.0), _RETRY_AFTER_MAX)


def throttle_delay(times: int) -> float:
    """Return the seconds to wait after the n-th 429 in a row without `Retry-After`: 16, 32, 64, 64, …"""
    assert times >= 1, f"429s are counted from 1, not {times}"
    return min(_THROTTLE_FIRST * 2.0 ** min(times - 1, 10), _THROTTLE_CAP)


def _check_number(field: str, value: float, least: float, most: float) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not least <= value <= most:
        raise InvalidSetting(field, repr(value), f"a number from {least:g} to {most:g}")


def _check_types(field: str, types: tuple[type[BaseException], ...]) -> None:
    if not isinstance(types, tuple) or not all(isinstance(t, type) and issubclass(t, BaseException) for t in types):
        raise InvalidSetting(field, repr(types), "a tuple of exception classes")
