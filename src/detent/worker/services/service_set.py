"""What every worker does for the database besides its jobs.

Each service stands alone: one that fails is counted and said, and the others go on. What one worker at a time should do
is done by whoever has its lease in the database; it may take long, so it is apart from what everybody does in haste.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from detent.alerts.options import SinkOptions
from detent.errors import DatabaseError, DatabaseUnreachable, SchemaMissing
from detent.model.clock import Clock, SystemClock
from detent.model.ids import ReservedIds
from detent.store.apart import cause_of, is_damage
from detent.store.contract import JobFilter, Store
from detent.worker.log_limit import DAMAGE
from detent.worker.options import WorkerOptions
from detent.worker.services.alerts import Alerts
from detent.worker.services.archive import Archive
from detent.worker.services.breakers import Breakers
from detent.worker.services.counts import Counts
from detent.worker.services.due_jobs import expire, promote
from detent.worker.services.heartbeat import Heartbeat
from detent.worker.services.invariants import Invariants
from detent.worker.services.log_growth import LogGrowth
from detent.worker.services.operations import operations
from detent.worker.services.reaper import Reaper
from detent.worker.services.reconciliation import Reconcile
from detent.worker.services.recovery import Recovery, ops_recovery
from detent.worker.services.retention import Keep, Retention
from detent.worker.services.schedules import schedules
from detent.worker.services.service import Service
from detent.worker.services.unreported_failures import failures

__all__ = ["ServiceSet"]

log = logging.getLogger("detent.worker")

_LOOK_EVERY = 1.0
_AGAIN = 0.4
_OLD = 3.0
_LEASE_MIN = 10.0
_SAID_EVERY = 60.0
_ANSWER_MAX = 60.0
"""Seconds until a connection on which a service gets no answer is given up."""


class ServiceSet:
    """What is due, whenever it is asked. `tick` and `tick_alone` may be called from two threads, each from one."""

    def __init__(
        self,
        store: Store,
        options: WorkerOptions,
        worker_id: int,
        clock: Clock | None = None,
        sinks: SinkOptions | None = None,
    ) -> None:
        self._store = store
        self._worker_id = worker_id
        self._clock = clock or SystemClock()
        self._held_up_after = options.lease / 3
        self.heartbeat = Heartbeat(store, options, worker_id)
        self.recovery = Recovery(store)
        self.failures_found = threading.Event()
        """Set while the application may have to hear of failed jobs."""
        activity = self.heartbeat.activity
        self._alerts = Alerts(store, sinks or SinkOptions(), options.lease, activity=activity)
        archive = Archive(options.archive, worker_id) if options.archive else None
        keep = Keep(
            options.keep_succeeded,
            options.keep_others,
            options.keep_staged,
            options.keep_log,
            keys_as_jobs=options.keep_keys == "as_jobs",
        )
        self._reaper = Reaper(store, options.lease, self._clock)
        ids = ReservedIds(store.ids_reserve, 100)
        self.services: list[Service] = [
            self.heartbeat.service(),
            promote(store),
            self._reaper.service(),
            expire(store),
            failures(self.failures_found.set),
            schedules(store, ids),
            Reconcile(store, ids).service(),
            operations(store),
            self.recovery.service(),
            ops_recovery(store),
            Breakers(store, activity).service(),
            Counts(store, activity, self._clock).service(),
            Retention(store, keep, archive=archive).service(),
            Invariants(store, self._clock).service(),
            LogGrowth(store).service(),
            self._alerts.service(),
        ]
        self._due: dict[str, float] = {}
        self._served: dict[str, object] = {}
        self._asked: dict[str, tuple[float, bool]] = {}
        self._look_at: float | None = None
        self._said: dict[str, float] = {}
        self.failures: Counter[str] = Counter()

    def tick(self, now: float, *, asked_to_drain: bool) -> int | None:
        """Do what is due of what every worker does; how much is left to do, where that was asked, once a second. Raises
        the first `DatabaseError` at the end, but for one that damaged rows or pages cause: that is no outage."""
        try:
            self._pass([one for one in self.services if not one.alone], now, self._run_quick)
        except DatabaseError:
            self.saw_outage()
            raise
        if not asked_to_drain or (self._look_at is not None and now < self._look_at):
            return None
        self._look_at = now + _LOOK_EVERY
        return self._left()

    def tick_alone(self, now: float) -> None:
        """Do what is due of what one worker at a time does. Raises the first `DatabaseError` at the end."""
        self._pass([one for one in self.services if one.alone], now, self._run_if_ours)

    def next_quick(self, now: float) -> float:
        """When `tick` may have something to do again, as far as is known now."""
        return min(self._next(one, now) for one in self.services if not one.alone)

    def next_alone(self, now: float) -> float:
        """The same for `tick_alone`."""
        return min(self._next(one, now) for one in self.services if one.alone)

    def _next(self, service: Service, now: float) -> float:
        due = self._due.get(service.name, now)
        heard = self.heartbeat.heard
        if service.at is None or heard is None or now - heard[1] > _OLD:
            return due
        agenda, heard_at = heard
        at = service.at(agenda)
        if at is None or heard is self._served.get(service.name):
            # Not before there is another agenda.
            return max(due, heard_at + _OLD)
        return max(due, heard_at + (at - agenda.now).total_seconds())

    def saw_outage(self) -> None:
        """The database did not answer, or not in time, until now: holders get the time to renew."""
        self._reaper.saw_outage(self._clock.monotonic())

    def stood_still(self) -> None:
        """This process did nothing for a while, until now."""
        self._reaper.stood_still(self._clock.monotonic())

    def _pass(self, services: list[Service], now: float, run: Callable[[Service, float], None]) -> None:
        away: DatabaseError | None = None
        for service in services:
            if now < self._due.get(service.name, now) or not self._has_come(service, now):
                continue
            try:
                self._due[service.name] = now + service.every
                run(service, now)
                if service.calm_every is not None and self.heartbeat.activity.is_calm:
                    self._due[service.name] = now + service.calm_every
            except Exception as error:
                self.failures[service.name] += 1
                if is_damage(error) or isinstance(error, SchemaMissing) or not isinstance(error, DatabaseError):
                    self._say(service, error, now)
                    continue
                away = away or error
                if isinstance(error, DatabaseUnreachable):
                    break
        if away is not None:
            raise away

    def _say(self, service: Service, error: Exception, now: float) -> None:
        """Log once a minute that damage, or a defect, stops a service."""
        log.debug("service %s failed", service.name, exc_info=error)
        if now < self._said.get(service.name, now):
            return
        self._said[service.name] = now + _SAID_EVERY
        place = traceback.extract_tb(error.__traceback__)[-1]
        log.error(
            "service %s failed and is tried again, everything else goes on: %s: %s (%s:%d); run `detent verify`",
            *(service.name, type(error).__name__, cause_of(error), Path(place.filename).name, place.lineno or 0),
            extra=DAMAGE if is_damage(error) else {"cause": "service"},
        )

    def _has_come(self, service: Service, now: float) -> bool:
        """Whether there is something to do for it, by the last agenda and the time that has passed since; without one,
        there may be. Once it is done, another agenda is had by the time it may be done again."""
        heard = self.heartbeat.heard
        if service.at is None or heard is None or now - heard[1] > _OLD:
            return True
        if heard is self._served.get(service.name):
            return False
        agenda, heard_at = heard
        at = service.at(agenda)
        if at is None or (at - agenda.now).total_seconds() > now - heard_at:
            return False
        self._served[service.name] = heard
        self._due["heartbeat"] = min(self._due["heartbeat"], now + max(_AGAIN, service.every))
        return True

    def _run_quick(self, service: Service, now: float) -> None:
        began_at = self._clock.monotonic()
        with self._store.answering_within(_ANSWER_MAX):
            service.run(now)
        # Each of these is done in a moment: one that took long stood in line, and so did the renewals of others.
        if self._clock.monotonic() - began_at > self._held_up_after:
            self.saw_outage()

    def _run_if_ours(self, service: Service, now: float) -> None:
        if self._is_ours(service, now):
            service.run(now)

    def _is_ours(self, service: Service, now: float) -> bool:
        """Asked twice in a lease and not every time: an idle worker shall write as little as can be."""
        ask_at, ours = self._asked.get(service.name, (now, False))
        if now >= ask_at:
            lease = max(_LEASE_MIN, 6 * service.every)
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
        self._alerts.close()
        with contextlib.suppress(DatabaseError):
            for name, (_, ours) in list(self._asked.items()):
                if ours:
                    self._store.service_drop(name, self._worker_id)
            self.heartbeat.goodbye()
