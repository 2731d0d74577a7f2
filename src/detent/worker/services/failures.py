"""Jobs that the reaper gave up: their application hears of it.

Whoever held such a job is dead, and whoever reaped it may not know its task. So it is on a list until a worker that
does has told its application: once, or once more where that worker died while it told.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from detent.store.contract import Store
from detent.worker.services.service import Service

__all__ = ["Failures"]

_EVERY = 2.0
_BATCH = 100
_TELLING_MAX = 60.0
"""Seconds after which somebody else may tell what was taken to be told."""


class Failures:
    """Takes from the list what this worker can tell, and strikes out what was told. Safe from any thread."""

    def __init__(self, store: Store, tasks: Callable[[], Sequence[str]]) -> None:
        self._store = store
        self._tasks = tasks
        self._lock = threading.Lock()
        self._to_tell: list[int] = []
        self._told: list[int] = []

    def service(self) -> Service:
        """Every two seconds while there is something on the list, by every worker."""
        return Service(
            "failures", _EVERY, self.run, at=lambda agenda: agenda.now if agenda.untold or self._told else None
        )

    def run(self, _now: float) -> None:
        """Strike out, and take more where all that was taken has been handed on."""
        with self._lock:
            told, waits = list(self._told), bool(self._to_tell)
        if told:
            self._store.untold_done(told)
            with self._lock:
                self._told = [job_id for job_id in self._told if job_id not in told]
        if not waits and (tasks := self._tasks()):
            taken = self._store.untold_take(tasks, _BATCH, _TELLING_MAX)
            with self._lock:
                self._to_tell += taken

    @property
    def waits(self) -> bool:
        """Whether something is to be told now."""
        return bool(self._to_tell)

    def to_tell(self) -> list[int]:
        """What is to be told now, handed over."""
        with self._lock:
            taken, self._to_tell = self._to_tell, []
        return taken

    def told(self, job_ids: Sequence[int]) -> None:
        """The application has heard of these."""
        with self._lock:
            self._told += job_ids
