"""How a function steers what becomes of its job: exceptions with a meaning."""

from __future__ import annotations

from datetime import timedelta

from detent.errors import DetentError, InvalidInput

__all__ = ["Fatal", "Snooze", "Throttled"]

_DELAY_MAX = 366 * 86_400.0


class Fatal(DetentError):
    """No further attempt will help: the job is quarantined at once, with this reason."""


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


def _seconds(field: str, value: float | timedelta) -> float:
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if not 0 <= seconds <= _DELAY_MAX:
        raise InvalidInput(field, repr(value), f"0 to {_DELAY_MAX:g} seconds")
    return seconds
