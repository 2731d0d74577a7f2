"""Limits: how many jobs may run at once, and how many may start in a period of time."""

from __future__ import annotations

import math
from dataclasses import dataclass

from detent.errors import InvalidSetting
from detent.model.limit_records import NewLimit

__all__ = ["Limit"]

_CONCURRENCY_MAX = 1_000_000
_BURST_SECONDS = 0.1
"""Default burst, in seconds of the rate. A worker that waits for tokens polls twice in this time, so it can keep up
with any rate; a burst of one would hold back a rate of 1,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit for all workers together: at most `concurrency` jobs run at once, `rate` jobs start per `per` seconds.

    `rate` is an average. After a quiet period, up to `burst` jobs may start together; the default is what the rate
    allows in a tenth of a second, and at least 1. So `Limit(rate=10)` starts a job every 0.1 s, and
    `Limit(rate=10, burst=10)` lets 10 start at once and 10 more within the next second. A job counts as one, or as the
    `cost` of its task. `InvalidSetting` for bounds under which no job could start.
    """

    rate: float | None = None
    per: float = 1.0
    burst: float | None = None
    concurrency: int | None = None

    def __post_init__(self) -> None:
        for name in ("rate", "per", "burst"):
            value = getattr(self, name)
            if value is None and name != "per":
                continue
            least = 1 if name == "burst" else 0
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise InvalidSetting(name, repr(value)[:80], "a number")
            if value < least or value <= 0:
                raise InvalidSetting(name, repr(value)[:80], "at least 1" if least else "more than 0")
        if self.concurrency is not None and (
            isinstance(self.concurrency, bool)
            or not isinstance(self.concurrency, int)
            or not 1 <= self.concurrency <= _CONCURRENCY_MAX
        ):
            raise InvalidSetting("concurrency", repr(self.concurrency)[:80], f"1 to {_CONCURRENCY_MAX}")

    @property
    def holds(self) -> float:
        """Number of tokens in its bucket when it is full."""
        if self.burst is not None:
            return float(self.burst)
        return float(max(1.0, (self.rate or 0.0) / self.per * _BURST_SECONDS))

    def under(self, key: str, *, tasks: tuple[str, ...] = (), queues: tuple[str, ...] = ()) -> NewLimit:
        """Return the limit under a key, as it is stored."""
        return NewLimit(
            key=key,
            rate=None if self.rate is None else float(self.rate),
            per=float(self.per),
            burst=self.holds,
            concurrency_max=self.concurrency,
            tasks=tasks,
            queues=queues,
        )
