"""Dead jobs in the worker's log: at most one line a second, however many they are."""

from __future__ import annotations

import logging

__all__ = ["DeadJobLog"]

log = logging.getLogger("detent.worker")

_NAMED_MAX = 10
_SAY_EVERY = 1.0


class DeadJobLog:
    """Gathers their numbers until they are said. True while some are not."""

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._say_at = 0.0

    def __bool__(self) -> bool:
        return bool(self._ids)

    def add(self, job_id: int) -> None:
        """This one."""
        self._ids.append(job_id)

    def say(self, now: float) -> None:
        """Say them, where the last line is long enough ago by then."""
        if not self._ids or now < self._say_at:
            return
        ids, self._ids = self._ids, []
        self._say_at = now + _SAY_EVERY
        more = len(ids) - _NAMED_MAX
        shown = ", ".join(map(str, ids[:_NAMED_MAX])) + (f" and {more} more" if more > 0 else "")
        log.warning("dead: job %s; see `detent dead list`", shown)
