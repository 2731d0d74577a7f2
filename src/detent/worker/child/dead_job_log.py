"""Logs which jobs are dead: at most one line a second, however many there are."""

from __future__ import annotations

import logging

__all__ = ["DeadJobLog"]

log = logging.getLogger("detent.worker")

_NAMED_MAX = 10
_WRITE_EVERY = 1.0


class DeadJobLog:
    """Collects the ids of dead jobs until they are logged. True while some are not."""

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._write_at = 0.0

    def __bool__(self) -> bool:
        return bool(self._ids)

    def add(self, job_id: int) -> None:
        """Add a dead job."""
        self._ids.append(job_id)

    def write(self, now: float) -> None:
        """Log the jobs collected so far, unless the last line is less than a second old."""
        if not self._ids or now < self._write_at:
            return
        ids, self._ids = self._ids, []
        self._write_at = now + _WRITE_EVERY
        more = len(ids) - _NAMED_MAX
        shown = ", ".join(map(str, ids[:_NAMED_MAX])) + (f" and {more} more" if more > 0 else "")
        log.warning("%s dead; see `detent dead list`.", f"Job {shown} is" if len(ids) == 1 else f"Jobs {shown} are")
