"""Exceptions by which a function decides what happens to its job."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from detent.errors import DetentError, InvalidInput
from detent.model.backoff import retry_after
from detent.model.clock import Clock, SystemClock

__all__ = ["Conflict", "Critical", "Fatal", "JobCancelled", "Snooze", "Throttled"]

_DELAY_MAX = 366 * 86_400.0
_TOO_MANY_REQUESTS = 429


class Fatal(DetentError):
    """Raise it if no further attempt can succeed: the job is quarantined at once, with this reason."""


class Critical(Fatal):
    """Raise it if no target of the run can succeed: a wrong password, a closed account.

    In a method of a batch, it fails this target and stops the whole run: targets that have not started are not called,
    and the run fails with this reason. The run can be retried. Elsewhere it means the same as `Fatal`.
    """


class Conflict(Fatal):
    """A target was not changed, because others have changed it since the run last knew its value."""

    def __init__(self, ref: str, found: str, expected: str, advice: str) -> None:
        self.ref = ref
        self.found = found
        self.expected = expected
        super().__init__(
            f"Target {ref!r:.80} was not changed: its value is {found:.200}, expected {expected:.200}. {advice}"
        )


class JobCancelled(DetentError):
    """Raised by `ctx.raise_if_cancelled()` if a cancel was requested: the job is cancelled. If no cancel was requested,
    it is an ordinary error."""

    def __init__(self, message: str = "stopped as requested") -> None:
        super().__init__(message)


class Snooze(DetentError):
    """Raise it to run the job again after `delay` seconds. The attempt does not count."""

    def __init__(self, delay: float | timedelta) -> None:
        self.delay = _seconds("delay", delay)
        super().__init__(f"snoozed for {self.delay:g} s")


class Throttled(DetentError):
    """Raise it if the other side answers 429: all jobs under the limit's key pause, and this job runs again. The
    attempt does not count.

    `retry_after` is in seconds; without it the pause is 16, 32, then 64 seconds.
    """

    def __init__(self, retry_after: float | timedelta | None = None) -> None:
        self.retry_after = None if retry_after is None else _seconds("retry_after", retry_after)
        super().__init__("throttled" if self.retry_after is None else f"throttled for {self.retry_after:g} s")

    @classmethod
    def from_response(cls, response: Any, clock: Clock | None = None) -> Throttled | None:
        """Return the exception for a response of an HTTP client; None unless its status is 429.

        `Retry-After` may be in seconds or a date. A date is compared with the `Date` of the response if it has one,
        because the other side's clock may differ. Without a valid header, the default delays apply. Accepts responses
        of httpx, httpx2, requests and urllib, and other objects with the same attributes.
        """
        if getattr(response, "status_code", getattr(response, "status", None)) != _TOO_MANY_REQUESTS:
            return None
        asked = _header(response, "Retry-After")
        return cls(None if asked is None else retry_after(asked, _sent_at(response) or (clock or SystemClock()).now()))

    @classmethod
    def check(cls, response: Any) -> None:
        """Raise it if the status of a response is 429; otherwise do nothing."""
        if (throttled := cls.from_response(response)) is not None:
            raise throttled


def _seconds(field: str, value: float | timedelta) -> float:
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if not 0 <= seconds <= _DELAY_MAX:
        raise InvalidInput(field, repr(value), f"0 to {_DELAY_MAX:g} seconds")
    return seconds


def _header(response: Any, name: str) -> str | None:
    """Return a header. HTTP clients ignore case; a plain mapping may have the name in lower case only."""
    headers = getattr(response, "headers", None) or {}
    found = headers.get(name)
    return headers.get(name.lower()) if found is None else str(found)


def _sent_at(response: Any) -> datetime | None:
    from email.utils import parsedate_to_datetime

    try:
        sent = parsedate_to_datetime(_header(response, "Date") or "")
    except (ValueError, TypeError, IndexError):
        return None
    return None if sent.tzinfo is None else sent
