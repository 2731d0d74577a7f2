"""Alerts: find out whether something is wrong, and notify the configured sinks (M2).

One worker evaluates the policies. Every sink has a thread of its own, so a sink that is slow or unreachable delays
neither the other sinks nor any other service.
"""

from __future__ import annotations

import logging
import threading
from datetime import datetime, timedelta

from detent.alerts.delivery import deliver, sinks_of
from detent.alerts.evaluation import evaluate_policies
from detent.alerts.policies import in_force
from detent.alerts.sink_options import SinkOptions
from detent.alerts.sinks import Sink
from detent.errors import DatabaseError
from detent.model.alert_records import Policy
from detent.model.clock import Clock, SystemClock
from detent.model.service_records import Agenda
from detent.store.contract import Store
from detent.worker.log_limit import DATABASE
from detent.worker.services.job_activity import JobActivity
from detent.worker.services.service import Service

__all__ = ["Alerts"]

log = logging.getLogger("detent.worker")

_EVERY = 5.0
_EVERY_MIN = 0.5
_JUDGED_EVERY = 15.0
_READ_EVERY = 60.0
_SWEPT_EVERY = 60.0
_SWEPT_CALMLY = 3600.0
_JOBS_MAX = 2_000
"""Maximum number of jobs that one count looks at. If more have ended, these stand for all."""
_KEEP = 30 * 86_400.0
_NEVER = 10**12
_CLOSE_MAX = 2.0


class Alerts:
    """Counts ended jobs, evaluates the policies, and wakes the couriers if there is something to deliver."""

    def __init__(
        self,
        store: Store,
        sinks: SinkOptions,
        lease: float,
        clock: Clock | None = None,
        activity: JobActivity | None = None,
    ) -> None:
        self._store = store
        self._clock = clock or SystemClock()
        self._activity = activity or JobActivity()
        self._every = max(_EVERY_MIN, min(_EVERY, lease / 3))
        # Jobs that ended are found by their leases, which stay for two thirds of their time.
        self._judged_every = max(_EVERY_MIN, min(_JUDGED_EVERY, lease / 3))
        self._remind_after = sinks.remind_hours * 3600 or _NEVER
        self._couriers = [_Courier(store, sink, sinks.timeout) for sink in sinks_of(sinks)]
        self._judge_at: float | None = None
        self._swept_at: float | None = None
        self._looked_at: datetime | None = None
        self._calm_for = timedelta(0)
        self._read: tuple[float, dict[str, Policy]] = (0.0, {})

    def service(self) -> Service:
        """Return the service: by one worker, while an alert fires, is undelivered or may have changed; rarely
        otherwise."""
        return Service("alerts", self._every, self.run, alone=True, at=self._next)

    def _next(self, agenda: Agenda) -> datetime:
        if self._looked_at is None or agenda.notices or agenda.firing:
            return agenda.now
        again_at = self._looked_at + self._calm_for
        return min(again_at, self._activity.next_look(agenda, self._looked_at) or again_at)

    def run(self, now: float) -> None:
        """Count, evaluate and sweep as far as each is due, and have new alerts delivered."""
        agenda = self._activity.agenda
        some_fire, news = agenda is None or agenda.firing, agenda is None or agenda.notices
        if self._judge_at is None or now >= self._judge_at:
            self._judge_at = now + self._judged_every
            self._store.alert_tally(_JOBS_MAX)
            evaluation = evaluate_policies(self._store, self._policies(now), some_fire=some_fire)
            self._looked_at = None if agenda is None else agenda.now
            self._calm_for = timedelta(seconds=evaluation.calm_for)
            news = news or evaluation.changed > 0
        if self._swept_at is None or now >= self._swept_at + (_SWEPT_EVERY if some_fire else _SWEPT_CALMLY):
            self._swept_at = now
            news = self._store.alert_sweep(self._remind_after, _KEEP) > 0 or news
        if news:
            self._store.alert_spread([courier.sink.route for courier in self._couriers])
            for courier in self._couriers:
                courier.wake()

    def _policies(self, now: float) -> dict[str, Policy]:
        """Return the policies. They change rarely, so they are read once a minute."""
        read_at, policies = self._read
        if not policies or now - read_at >= _READ_EVERY - self._every:
            policies = in_force(self._store.alert_policy_list())
            self._read = (now, policies)
        return policies

    def close(self) -> None:
        """Start no more deliveries, and wait a moment for those in progress. The next worker delivers the rest."""
        for courier in self._couriers:
            courier.end()
        until = self._clock.monotonic() + _CLOSE_MAX
        for courier in self._couriers:
            courier.join(max(0.0, until - self._clock.monotonic()))


class _Courier:
    """A sink and the thread that delivers to it. The thread starts with the first delivery."""

    def __init__(self, store: Store, sink: Sink, timeout: float) -> None:
        self.sink = sink
        self._store = store
        self._timeout = timeout
        self._due = threading.Event()
        self._over = False
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Deliver what there is."""
        self._due.set()
        if self._thread is None:
            name = f"alerts-{self.sink.route.sink}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def end(self) -> None:
        """End the thread, after the delivery in progress."""
        self._over = True
        self._due.set()

    def join(self, seconds: float) -> None:
        """Wait until the thread has ended, for at most `seconds`."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            self._due.wait()
            self._due.clear()
            if self._over:
                return
            try:
                deliver(self._store, self.sink, self._timeout)
            except DatabaseError as error:
                log.warning(
                    "Delivering alerts to %s failed: %s", self.sink.route.sink, _first_line(error), extra=DATABASE
                )
            except Exception:
                log.exception("Delivering alerts to %s failed.", self.sink.route.sink)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
