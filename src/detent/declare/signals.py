"""How a function steers what becomes of its job: exceptions with a meaning."""

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
    """No further attempt will help: the job is quarantined at once, with this reason."""


class Critical(Fatal):
    """Nothing of this run will succeed: a wrong password, an account that is closed.

    Raised by a method of a batch, it fails this target and stops the whole run: targets that have not begun are not
    called, and the run fails with this reason. It can be retried. Anywhere else it means the same as `Fatal`.
    """


class Conflict(Fatal):
    """A target was not changed, since it is no longer what this run expects: somebody else has changed it."""

    def __init__(self, ref: str, found: str, expected: str, advice: str) -> None:
        self.ref = ref
        self.found = found
        self.expected = expected
        super().__init__(f"{ref!r:.80} was not changed: it is now {found:.200}, expected {expected:.200}; {advice}")


class JobCancelled(DetentError):
    """A cancel of this job was requested, and its function obeys: the job is cancelled. Raised by
    `ctx.raise_if_cancelled()`. If no cancel was requested, it is an error like any other."""

    def __init__(self, message: str = "stopped as requested") -> None:
        super().__init__(message)


class Snooze(DetentError):
    """Not now: run this job again after a while. The attempt does not count."""

    def __init__(self, delay: float | timedelta) -> None:
        self.delay = _seconds("delay", delay)
        super().__init__(f"snoozed for {self.delay:g} s")


class Throttled(DetentError):
    """The other side said 429: pause everybody on this key, and run this job again. The attempt does not count.

    `retry_after` in seconds; without it the engine waits 16, 32, then 64 seconds.
    """

    def __init__(self, retry_after: float | timedelta | None = None) -> None:
        self.retry_after = None if retry_after is None else _seconds("retry_after", retry_after)
        super().__init__("throttled" if self.retry_after is None else f"throttled for {self.retry_after:g} s")

    @classmethod
    def from_response(cls, response: Any, clock: Clock | None = None) -> Throttled | None:
        """What a response of an HTTP client asks for: None unless its status is 429.

        `Retry-After` counts in seconds or as a date, which is measured by the `Date` of the response itself where it
        has one, since the other side's clock may differ; without it, or where it is neither, the engine's own delays.
        Takes responses of httpx, httpx2, requests and urllib, and whatever has a status and headers as they do.
        """
        if getattr(response, "status_code", getattr(response, "status", None)) != _TOO_MANY_REQUESTS:
            return None
        asked = _header(response, "Retry-After")
        return cls(None if asked is None else retry_after(asked, _sent_at(response) or (clock or SystemClock()).now()))

    @classmethod
    def check(cls, response: Any) -> None:
        """Raise it where a response is a 429; anything else is none of its business."""
        if (throttled := cls.from_response(response)) is not None:
            raise throttled


def _seconds(field: str, value: float | timedelta) -> float:
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if not 0 <= seconds <= _DELAY_MAX:
        raise InvalidInput(field, repr(value), f"0 to {_DELAY_MAX:g} seconds")
    return seconds


def _header(response: Any, name: str) -> str | None:
    """By its name as it is written; clients know it in any case, a plain mapping perhaps in small letters only."""
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
