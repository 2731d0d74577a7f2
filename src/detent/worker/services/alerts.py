"""Alerts: find out whether something is wrong, and notify the configured sinks (M2).

One worker evaluates the policies. Every sink has a thread of its own, so a sink that is slow or unreachable delays
neither the other sinks nor any other service.
"""

from __future__ import annotations

import logging
import threading
from datetime import datetime, timedelta

from detent.alerts.courier import deliver, sinks_of
from detent.alerts.judge import look
from detent.alerts.options import SinkOptions
from detent.alerts.policies import in_force
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
"""Jobs that one count looks at: where more have ended, they stand for all."""
_KEEP = 30 * 86_400.0
_NEVER = 10**12
_LAST_WORDS = 2.0


class Alerts:
    """Counts, judges, and lets the couriers know that there is something to tell."""

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
        # Jobs that ended are found by their leases, and for two thirds of one these are there.
        self._judged_every = max(_EVERY_MIN, min(_JUDGED_EVERY, lease / 3))
        self._remind_after = sinks.remind_hours * 3600 or _NEVER
        self._couriers = [_Courier(store, sink, sinks.timeout) for sink in sinks_of(sinks)]
        self._judge_at: float | None = None
        self._swept_at: float | None = None
        self._looked_at: datetime | None = None
        self._calm_for = timedelta(0)
        self._read: tuple[float, dict[str, Policy]] = (0.0, {})

    def service(self) -> Service:
        """By one worker, while something fires, is to be told, or can have changed; now and then where nothing is."""
        return Service("alerts", self._every, self.run, alone=True, at=self._next)

    def _next(self, agenda: Agenda) -> datetime:
        if self._looked_at is None or agenda.notices or agenda.firing:
            return agenda.now
        again_at = self._looked_at + self._calm_for
        return min(again_at, self._activity.look_at(agenda, self._looked_at) or again_at)

    def run(self, now: float) -> None:
        """In their time count, judge and sweep; and hand on what is to be told."""
        agenda = self._activity.agenda
        some_fire, news = agenda is None or agenda.firing, agenda is None or agenda.notices
        if self._judge_at is None or now >= self._judge_at:
            self._judge_at = now + self._judged_every
            self._store.alert_tally(_JOBS_MAX)
            judged = look(self._store, self._policies(now), some_fire=some_fire)
            self._looked_at = None if agenda is None else agenda.now
            self._calm_for = timedelta(seconds=judged.calm_for)
            news = news or judged.changed > 0
        if self._swept_at is None or now >= self._swept_at + (_SWEPT_EVERY if some_fire else _SWEPT_CALMLY):
            self._swept_at = now
            news = self._store.alert_sweep(self._remind_after, _KEEP) > 0 or news
        if news:
            self._store.alert_spread([courier.sink.route for courier in self._couriers])
            for courier in self._couriers:
                courier.wake()

    def _policies(self, now: float) -> dict[str, Policy]:
        """Changed rarely, so asked for once a minute."""
        read_at, policies = self._read
        if not policies or now - read_at >= _READ_EVERY - self._every:
            policies = in_force(self._store.alert_policy_list())
            self._read = (now, policies)
        return policies

    def close(self) -> None:
        """No more is begun; what is being sent has a moment to end. What it did not come to say is said again by the
        worker that comes after."""
        for courier in self._couriers:
            courier.end()
        until = self._clock.monotonic() + _LAST_WORDS
        for courier in self._couriers:
            courier.join(max(0.0, until - self._clock.monotonic()))


class _Courier:
    """One sink, and the thread that waits for it; it begins with the first thing there is to tell."""

    def __init__(self, store: Store, sink: Sink, timeout: float) -> None:
        self.sink = sink
        self._store = store
        self._timeout = timeout
        self._something = threading.Event()
        self._over = False
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """There may be something to tell."""
        self._something.set()
        if self._thread is None:
            name = f"alerts-{self.sink.route.sink}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def end(self) -> None:
        """At once, where nothing is being sent."""
        self._over = True
        self._something.set()

    def join(self, seconds: float) -> None:
        """Wait for its end, so long at most."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            self._something.wait()
            self._something.clear()
            if self._over:
                return
            try:
                deliver(self._store, self.sink, self._timeout)
            except DatabaseError as error:
                log.warning("telling alerts failed: %s", str(error).partition("\n")[0], extra=DATABASE)
            except Exception:
                log.exception("telling alerts failed")
