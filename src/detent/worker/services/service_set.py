"""All services of a worker, and which of them are due.

Services do not depend on each other: if one fails, that is counted and logged, and the others go on. A service for one
worker at a time is run by the worker that holds its lease in the database. It may take long, so these services run on
a thread of their own, apart from the quick ones that every worker runs.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from detent.alerts.sink_options import SinkOptions
from detent.errors import DatabaseError, DatabaseUnreachable, SchemaMissing
from detent.model.clock import Clock, SystemClock
from detent.model.ids import ReservedIds
from detent.store.contract import Store
from detent.store.row_errors import cause_of, is_damage
from detent.worker.log_limit import DAMAGE
from detent.worker.options import WorkerOptions
from detent.worker.services.alerts import Alerts
from detent.worker.services.breakers import Breakers
from detent.worker.services.counts import Counts
from detent.worker.services.due_jobs import build_expire_service, build_promote_service, build_wake_service
from detent.worker.services.heartbeat import Heartbeat
from detent.worker.services.invariants import Invariants
from detent.worker.services.log_growth import LogGrowth
from detent.worker.services.operations import build_operation_service
from detent.worker.services.reaper import Reaper
from detent.worker.services.reconciliation import Reconciliation
from detent.worker.services.recovery import Recovery, build_ops_recovery_service
from detent.worker.services.retention import Keep, Retention
from detent.worker.services.schedules import build_schedule_service
from detent.worker.services.service import Service
from detent.worker.services.tree_cancels import build_tree_cancel_service
from detent.worker.services.unreported_failures import build_failure_service

__all__ = ["ServiceSet"]

log = logging.getLogger("detent.worker")

_LOOK_EVERY = 1.0
_AGAIN = 0.4
_OLD = 3.0
_LEASE_MIN = 10.0
_LOG_EVERY = 60.0
LEFT_PORTION = 10_000
"""How many pending jobs a worker that drains looks at, each second."""
_ANSWER_MAX = 60.0
"""Seconds until a connection that gives a service no answer is given up."""


class ServiceSet:
    """Runs what is due. `tick` and `tick_alone` may run on two threads, each on one."""

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
        """Set while there may be failed jobs for which the application's hooks were not called."""
        activity = self.heartbeat.activity
        self._alerts = Alerts(store, sinks or SinkOptions(), options.lease, activity=activity)
        archive = None
        if options.archive:
            from detent.archive.writer import Archive  # not loaded into every worker

            archive = Archive(options.archive)
        keep = Keep(
            options.keep_succeeded,
            options.keep_others,
            options.keep_staged,
            options.keep_log,
            keys_as_jobs=options.keep_keys == "as_jobs",
        )
        self._reaper = Reaper(store, options.lease, self._clock)
        ids = ReservedIds(store.ids_reserve, 100)
        counts = Counts(store, activity, self._clock).service()
        self._last_counts = replace(counts, at=None)
        self.services: list[Service] = [
            self.heartbeat.service(),
            build_promote_service(store),
            build_wake_service(store),
            build_tree_cancel_service(store),
            self._reaper.service(),
            build_expire_service(store),
            build_failure_service(self.failures_found.set),
            build_schedule_service(store, ids),
            Reconciliation(store, ids).service(),
            build_operation_service(store),
            self.recovery.service(),
            build_ops_recovery_service(store),
            Breakers(store, activity).service(),
            counts,
            Retention(store, keep, archive=archive).service(),
            Invariants(store, self._clock).service(),
            LogGrowth(store).service(),
            self._alerts.service(),
        ]
        self._due: dict[str, float] = {}
        self._served: dict[str, object] = {}
        self._asked: dict[str, tuple[float, bool]] = {}
        self._look_at: float | None = None
        self._looked_until = 0
        self._pass_is_whole = True
        self._log_again_at: dict[str, float] = {}
        self.failures: Counter[str] = Counter()

    def tick(self, now: float, *, asked_to_drain: bool) -> bool | None:
        """Run the quick services that are due. With `asked_to_drain`, return once a second whether jobs are left.

        Raises the first `DatabaseError` at the end, unless damaged rows or pages caused it: that is no outage.
        """
        try:
            self._pass([one for one in self.services if not one.alone], now, self._run_quick)
        except DatabaseError:
            self.saw_outage()
            raise
        if not asked_to_drain or (self._look_at is not None and now < self._look_at):
            return None
        self._look_at = now + _LOOK_EVERY
        return self._has_jobs_left()

    def tick_alone(self, now: float) -> None:
        """Run the due services of which this worker holds the lease. Raises the first `DatabaseError` at the end."""
        self._pass([one for one in self.services if one.alone], now, self._run_if_ours)

    def next_quick(self, now: float) -> float:
        """Return when `tick` may have something to do, as far as is known now."""
        return min(self._next(one, now) for one in self.services if not one.alone)

    def next_alone(self, now: float) -> float:
        """Return when `tick_alone` may have something to do, as far as is known now."""
        return min(self._next(one, now) for one in self.services if one.alone)

    def _next(self, service: Service, now: float) -> float:
        due = self._due.get(service.name, now)
        heard = self.heartbeat.heard
        if service.at is None or heard is None or now - heard[1] > _OLD:
            return due
        agenda, heard_at = heard
        at = service.at(agenda)
        if at is None or heard is self._served.get(service.name):
            # Nothing to do before the next agenda.
            return max(due, heard_at + _OLD)
        return max(due, heard_at + (at - agenda.now).total_seconds())

    def saw_outage(self) -> None:
        """Note that the database did not answer, or not in time, until now: lease holders get time to renew."""
        self._reaper.saw_outage(self._clock.monotonic())

    def stood_still(self) -> None:
        """Note that this process stood still for a while, until now."""
        self._reaper.stood_still(self._clock.monotonic())

    def _pass(self, services: list[Service], now: float, run: Callable[[Service, float], None]) -> None:
        away: DatabaseError | None = None
        for service in services:
            if now < self._due.get(service.name, now) or not self._is_due(service, now):
                continue
            try:
                self._due[service.name] = now + service.every
                run(service, now)
                if service.calm_every is not None and self.heartbeat.activity.is_calm:
                    self._due[service.name] = now + service.calm_every
            except Exception as error:
                self.failures[service.name] += 1
                if is_damage(error) or isinstance(error, SchemaMissing) or not isinstance(error, DatabaseError):
                    self._log_failure(service, error, now)
                    continue
                away = away or error
                if isinstance(error, DatabaseUnreachable):
                    break
        if away is not None:
            raise away

    def _log_failure(self, service: Service, error: Exception, now: float) -> None:
        """Log, at most once a minute, that damage or a defect stops a service."""
        log.debug("Service %s failed.", service.name, exc_info=error)
        if now < self._log_again_at.get(service.name, now):
            return
        self._log_again_at[service.name] = now + _LOG_EVERY
        place = traceback.extract_tb(error.__traceback__)[-1]
        log.error(
            "service %s failed and is tried again, everything else goes on: %s: %s (%s:%d); run `detent verify`",
            *(service.name, type(error).__name__, cause_of(error), Path(place.filename).name, place.lineno or 0),
            extra=DAMAGE if is_damage(error) else {"cause": "service"},
        )

    def _is_due(self, service: Service, now: float) -> bool:
        """Return whether the service has something to do, by the last agenda and the time since; True without an
        agenda. If it has, the next heartbeat comes early enough to bring a new agenda before the service may run
        again."""
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
        # Each of these is quick: one that took long had to wait for the database, and so did the renewals of others.
        if self._clock.monotonic() - began_at > self._held_up_after:
            self.saw_outage()

    def _run_if_ours(self, service: Service, now: float) -> None:
        if self._is_ours(service, now):
            service.run(now)

    def _is_ours(self, service: Service, now: float) -> bool:
        """Return whether this worker holds the lease of the service. Asked twice per lease, because asking writes."""
        ask_at, ours = self._asked.get(service.name, (now, False))
        if now >= ask_at:
            lease = max(_LEASE_MIN, 6 * service.every)
            ours = self._store.service_take(service.name, self._worker_id, lease) is not None
            self._asked[service.name] = (now + lease / 2, ours)
        return ours

    def _has_jobs_left(self) -> bool:
        """Return whether there are jobs left for this worker: those of its own tasks, queues and versions. Parked
        workflows are not waited for. There may be very many of them, so each call looks at a portion of the pending
        jobs; only a whole pass that has found nothing is an answer."""
        left = self._store.job_left(*self.heartbeat.knows, after=self._looked_until, limit=LEFT_PORTION)
        if not left.found and left.place is None and not self._pass_is_whole:
            self._pass_is_whole = True
            left = self._store.job_left(*self.heartbeat.knows, limit=LEFT_PORTION)
        if left.found:
            self._pass_is_whole = left.place == 0
        self._looked_until = left.place or 0
        return left.found or left.place is not None

    def close(self) -> None:
        """Add up the last counts, and drop the leases, so that other workers take over at once. During an outage they
        expire."""
        self._alerts.close()
        with contextlib.suppress(DatabaseError):
            self._add_last_counts()
        with contextlib.suppress(DatabaseError):
            for name, (_, ours) in list(self._asked.items()):
                if ours:
                    self._store.service_drop(name, self._worker_id)
            self.heartbeat.report_end()

    def _add_last_counts(self) -> None:
        """Add up what has ended since the service last did so. Without this, if this was
        the last worker, the rates would lack it until a worker starts again."""
        now = self._clock.monotonic()
        heard = self.heartbeat.heard
        if heard is not None and now - heard[1] <= _OLD:  # not during an outage
            self._due.pop(self._last_counts.name, None)
            self._pass([self._last_counts], now, self._run_quick)
