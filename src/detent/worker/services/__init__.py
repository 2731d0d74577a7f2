"""What every worker does for the database besides its jobs: reap, promote, expire, show that it lives.

Each step stands alone: one that fails is counted and said, and the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from detent.errors import DatabaseError
from detent.store.contract import Store
from detent.worker.options import WorkerOptions

__all__ = ["Services"]

log = logging.getLogger("detent.worker")

_EVERY = 1.0
_BATCH = 500


class Services:
    """One pass a second."""

    def __init__(self, store: Store, options: WorkerOptions, worker_id: int) -> None:
        self._store = store
        self._options = options
        self._worker_id = worker_id
        self._next = 0.0
        self._steps: dict[str, Callable[[], object]] = {
            "promote": lambda: self._store.job_promote(_BATCH),
            "reap": lambda: self._store.lease_reap(_BATCH),
            "expire": lambda: self._store.job_expire(_BATCH),
        }

    def tick(self, now: float, *, asked_to_drain: bool) -> int | None:
        """Do what is due; how much is left to do, where that was asked. Raises the first `DatabaseError` at the end."""
        if now < self._next:
            return None
        self._next = now + _EVERY
        away: DatabaseError | None = None
        for name, step in self._steps.items():
            try:
                step()
            except DatabaseError as error:
                away = away or error
            except Exception:
                log.exception("service %s failed", name)
        if away is not None:
            raise away
        return self._left() if asked_to_drain else None

    def _left(self) -> int:
        return sum(count.jobs for count in self._store.counts() if count.state in ("pending", "running"))

    def close(self) -> None:
        """Nothing is held."""
