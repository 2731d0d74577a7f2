"""The lanes that this process knows to be there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from detent.model.records import NewJob

__all__ = ["Lane", "Lanes"]

Lane = tuple[str, str, str, int, str]
"""Queue, task, tenant, priority, and the key of its limit (empty: its task's own)."""

_KNOWN_MAX = 100_000


class Lanes:
    """Makes new lanes in transactions of their own, before a caller's transaction needs them.

    A lane made inside a transaction that stays open would let everybody else who needs it wait.
    """

    def __init__(self, make: Callable[[list[Lane]], None]) -> None:
        self._make = make
        self._known: set[Lane] = set()

    def ensure(self, jobs: Iterable[NewJob]) -> None:
        """Lanes for these jobs are there, committed. They are never deleted, so it is enough to have seen them once."""
        missing = {(job.queue, job.task, job.tenant, job.priority, job.limit_key or "") for job in jobs} - self._known
        if missing:
            self._make(sorted(missing))
            if len(self._known) > _KNOWN_MAX:
                self._known.clear()
            self._known |= missing

    async def ensure_async(self, jobs: Iterable[NewJob]) -> None:
        """The same without holding up the loop."""
        await asyncio.to_thread(self.ensure, jobs)
