"""How far each lane is known to be emptied, so that a claim need not walk over its dead rows again.

Under a snapshot that somebody holds open, claimed rows stay in the index and every claim would step over all of them.
A bound only says where to look first: a claim that comes back short looks below it in the same call, and all bounds are
forgotten every second and whenever this process puts something back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from datetime import datetime

from detent.model.clock import Clock

__all__ = ["Bounds", "Place"]

Place = tuple[datetime, int]
"""When it was due, and its id."""

SECONDS_MAX = 1.0


class Bounds:
    """By lane, the place up to which this process has emptied it. Safe from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._places: dict[int, Place] = {}
        self._since = clock.monotonic()
        self.after_lane: int | None = None
        """The lane after which the next claim begins, if there are too many for one claim to look at."""

    def known(self) -> Mapping[int, Place]:
        """Where to begin; empty once a second, so that nothing below is left for longer."""
        with self._lock:
            now = self._clock.monotonic()
            if now - self._since >= SECONDS_MAX:
                self._places = {}
                self._since = now
            return dict(self._places)

    def reach(self, places: Mapping[int, Place]) -> None:
        """A claim that got all it asked for went this far."""
        with self._lock:
            self._places.update(places)

    def forget(self) -> None:
        """Something may have come in below."""
        with self._lock:
            self._places = {}

    def admit(self, ids: Iterable[int]) -> None:
        """New jobs: they stand behind everything older, unless an id was reserved before."""
        first = min(ids, default=0)
        with self._lock:
            if any(first <= place[1] for place in self._places.values()):
                self._places = {}
