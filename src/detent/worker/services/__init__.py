"""What every worker does for the database besides its jobs.

Each service stands alone: one that fails is counted and said, and the others go on. What one worker at a time should do
is done by whoever has its lease in the database.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter

from detent.errors import DatabaseError, DatabaseUnreachable
from detent.model.clock import Clock, SystemClock
from detent.model.ids import ReservedIds
from detent.store.contract import JobFilter, Store
from detent.worker.options import WorkerOptions
from detent.worker.services.heartbeat import Heartbeat
from detent.worker.services.invariants import Invariants
from detent.worker.services.operations import operations
from detent.worker.services.queue import expire, promote
from detent.worker.services.reap import Reaper
from detent.worker.services.recovery import recovery
from detent.worker.services.retention import Keep, Retention
from detent.worker.services.schedules import schedules
from detent.worker.services.service import Service

__all__ = ["Services"]

log = logging.getLogger("detent.worker")

_PASS_EVERY = 1.0
_LEASE_MIN = 10.0


class Services:
    """One pass a second over all that is due."""

    def __init__(self, store: Store, options: WorkerOptions, worker_id: int, clock: Clock | None = None) -> None:
        self._store = store
        self._worker_id = worker_id
        self._clock = clock or SystemClock()
        self._held_up_after = options.lease / 3
        self.heartbeat = Heartbeat(store, options, worker_id)
        self._reaper = Reaper(store, options.lease)
        self.services: list[Service] = [
            self.heartbeat.service(),
            promote(store),
            self._reaper.service(),
            expire(store),
            schedules(store, ReservedIds(store.ids_reserve, 100)),
            operations(store),
            recovery(store),
            Retention(store, Keep(options.keep_succeeded, options.keep_others)).service(),
            Invariants(store).service(),
        ]
        self._due: dict[str, float] = {}
        self._asked: dict[str, tuple[float, bool]] = {}
        self._pass_at: float | None = None
        self.failures: Counter[str] = Counter()

    def tick(self, now: float, *, asked_to_drain: bool) -> int | None:
        """Do what is due; how much is left to do, where that was asked. Raises the first `DatabaseError` at the end."""
        if self._pass_at is not None:
            if now - self._pass_at < _PASS_EVERY:
                return None
            if now - self._pass_at > _PASS_EVERY + self._held_up_after:
                self._reaper.saw_outage(now)
        self._pass_at = now
        away: DatabaseError | None = None
        for service in self.services:
            if now < self._due.get(service.name, now):
                continue
            try:
                self._due[service.name] = now + service.every
                if self._is_ours(service, now):
                    service.run(now)
            except DatabaseError as error:
                self.failures[service.name] += 1
                away = away or error
                if isinstance(error, DatabaseUnreachable):
                    break
            except Exception:
                self.failures[service.name] += 1
                log.exception("service %s failed", service.name)
        if away is not None:
            self._reaper.saw_outage(self._clock.monotonic())
            raise away
        return self._left() if asked_to_drain else None

    def _is_ours(self, service: Service, now: float) -> bool:
        """Asked twice in a lease and not every time: an idle worker shall write as little as can be."""
        if not service.alone:
            return True
        ask_at, ours = self._asked.get(service.name, (now, False))
        if now >= ask_at:
            lease = max(_LEASE_MIN, 3 * service.every)
            ours = self._store.service_take(service.name, self._worker_id, lease) is not None
            self._asked[service.name] = (now + lease / 2, ours)
        return ours

    def _left(self) -> int:
        """What this worker could still do, or still does; jobs of tasks and queues it does not know are not its own."""
        tasks, queues = self.heartbeat.knows
        return sum(
            self._store.job_count(JobFilter(state=state, task=task, queue=queue))
            for state in ("pending", "running")
            for task in tasks
            for queue in queues or (None,)
        )

    def close(self) -> None:
        """Let others take over at once; where the database is away, they do when the leases have run out."""
        with contextlib.suppress(DatabaseError):
            for name, (_, ours) in self._asked.items():
                if ours:
                    self._store.service_drop(name, self._worker_id)
            self.heartbeat.goodbye()
