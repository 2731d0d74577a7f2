"""What this process remembers about lanes: which ones exist, and how far it has emptied them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from detent.model.clock import Clock
from detent.model.records import NewJob

__all__ = ["ClaimBounds", "KnownLanes", "Lane", "Place"]

Lane = tuple[str, str, str, int, str]
"""Queue, task, tenant, priority, and the key of its limit (empty: the limit of its task)."""

Place = tuple[datetime, int]
"""When a job was due, and its id."""

KNOWN_MAX = 100_000
SECONDS_MAX = 1.0


class KnownLanes:
    """Creates new lanes in transactions of their own, before a caller's transaction needs them.

    A lane that is created in a transaction that stays open would block all others that need it.
    """

    def __init__(self, create: Callable[[list[Lane]], None]) -> None:
        self._create = create
        self._known: set[Lane] = set()

    def ensure(self, jobs: Iterable[NewJob]) -> None:
        """Create and commit the lanes of these jobs, if they are missing. Lanes are never deleted, so those seen once
        need not be checked again."""
        missing = {(job.queue, job.task, job.tenant, job.priority, job.limit_key or "") for job in jobs} - self._known
        if missing:
            self._create(sorted(missing))
            if len(self._known) > KNOWN_MAX:
                self._known.clear()
            self._known |= missing

    async def ensure_async(self, jobs: Iterable[NewJob]) -> None:
        """Do the same on a thread."""
        await asyncio.to_thread(self.ensure, jobs)


class ClaimBounds:
    """The place up to which this process has emptied each lane, so that a claim need not step over dead rows again.

    While a transaction holds an old snapshot open, claimed rows stay in the index, and every claim would step over all
    of them. A bound only says where to look first. A claim that finds too few jobs looks below it in the same call, and
    all bounds are forgotten every second and whenever this process requeues a job. Safe from any thread.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._places: dict[int, Place] = {}
        self._since = clock.monotonic()
        self.after_lane: int | None = None
        """The lane after which the next claim starts, if one claim cannot read all lanes."""

    def known(self) -> Mapping[int, Place]:
        """Return where to start; empty once a second, so that no job below a bound is missed for longer."""
        with self._lock:
            now = self._clock.monotonic()
            if now - self._since >= SECONDS_MAX:
                self._places = {}
                self._since = now
            return dict(self._places)

    def reach(self, places: Mapping[int, Place]) -> None:
        """Set the places that a claim has reached which got all the jobs it asked for."""
        with self._lock:
            self._places.update(places)

    def forget(self) -> None:
        """Forget all bounds: there may be new jobs below them."""
        with self._lock:
            self._places = {}

    def admit(self, ids: Iterable[int]) -> None:
        """Note new jobs. They are behind all older ones, unless an id was reserved earlier."""
        first = min(ids, default=0)
        with self._lock:
            if any(first <= place[1] for place in self._places.values()):
                self._places = {}
