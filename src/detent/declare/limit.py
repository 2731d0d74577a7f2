"""How many jobs may run at once, and how many may begin in which time."""

from __future__ import annotations

import math
from dataclasses import dataclass

from detent.errors import InvalidSetting
from detent.model.limit_records import NewLimit

__all__ = ["Limit"]

_CONCURRENCY_MAX = 1_000_000
_BURST_SECONDS = 0.1
"""The default burst, in seconds of the rate. A worker that waits for tokens looks twice in this time, so that it can
keep up with any rate; a burst of one would hold a rate of 1,000 back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A bound on jobs, shared by all workers: at most `concurrency` run at once, `rate` start per `per` seconds.

    `rate` is an average. After a quiet time, up to `burst` jobs may start together; by default one, or what the rate
    gives in a tenth of a second if that is more. So `Limit(rate=10)` spaces its jobs by 0.1 s, and
    `Limit(rate=10, burst=10)` lets 10 start at once and 10 more within the next second. A job counts as one, or as many
    as the `cost` of its task says. Refuses bounds that would let no job start.
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
        """How many tokens its bucket holds when it is full."""
        if self.burst is not None:
            return float(self.burst)
        return float(max(1.0, (self.rate or 0.0) / self.per * _BURST_SECONDS))

    def under(self, key: str, *, tasks: tuple[str, ...] = (), queues: tuple[str, ...] = ()) -> NewLimit:
        """The limit of that key, as it is stored."""
        return NewLimit(
            key=key,
            rate=None if self.rate is None else float(self.rate),
            per=float(self.per),
            burst=self.holds,
            concurrency_max=self.concurrency,
            tasks=tasks,
            queues=queues,
        )
