"""The records of limits: how many at once, and how many in which time.

Frozen, without behaviour, as in `records`.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

__all__ = ["LimitRow", "NewLimit"]


class NewLimit(Struct, frozen=True, kw_only=True):
    """What shall hold for all jobs of these tasks and queues together. None is no bound of that kind.

    `rate` jobs `per` seconds on the average, up to `burst` at a time; up to `concurrency_max` running at once.
    """

    key: str
    rate: float | None = None
    per: float = 1.0
    burst: float = 1.0
    concurrency_max: int | None = None
    tasks: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()


class LimitRow(Struct, frozen=True, kw_only=True):
    """A limit as it stands. `tokens`: how many may begin now as far as its rate goes. `running`: how many run under it.

    `paused_until`: no claim before that time. `throttled`: how often in a row the other side said no; `open_until`: the
    breaker is open until then, and half open after it until an attempt has succeeded; None where it is closed.
    """

    key: str
    rate: float | None
    per: float
    burst: float
    concurrency_max: int | None
    tasks: tuple[str, ...]
    queues: tuple[str, ...]
    tokens: float
    running: int
    paused_until: datetime | None
    throttled: int
    open_until: datetime | None
